import gymnasium as gym
import numpy as np
import pytest

import sandboxgym as sg
from sandboxgym.core.errors import DataNotFoundError, InvalidActionError, InvalidOptionsError
from sandboxgym.sandboxes.browser import loop
from sandboxgym.sandboxes.browser.env import BrowserEnv, Turn
from sandboxgym.sandboxes.browser.errors import UncapturedPageError
from sandboxgym.sandboxes.browser.options import Limits, Options
from tests.sandboxes.browser.helpers import PageSite, html
from tests.sandboxes.browser.playing import play
from tests.sandboxes.browser.site import TestSite


@pytest.fixture(scope="module")
def env(browser):
    made = BrowserEnv(TestSite, goal="Look around.")
    yield made
    made.close()


def test_observations_are_in_their_space(env):
    obs, info = env.reset(seed=1)
    assert info == {}
    assert obs in env.observation_space
    assert (obs["goal"], obs["url"], obs["title"]) == (
        "Look around.",
        "https://site.test/",
        "index",
    )
    obs = play(env, ["click link 'tabs'", "click button 'open a popup'"])
    assert obs in env.observation_space
    assert obs["active_page_index"] == 1
    assert obs["open_pages_urls"][1].endswith("/popup?from=script")
    assert obs["open_pages_titles"] == ("tabs", "popup")


def test_samples_of_the_action_space_are_actions(env):
    env.reset(seed=1)
    env.action_space.seed(1)
    for _ in range(5):
        action = env.action_space.sample()
        assert action in env.action_space
        assert "there is no action" not in env.step(action)[0]["last_action_error"]


@pytest.mark.parametrize(
    ("action", "error"),
    [
        ("clik('1')", "there is no action 'clik'"),
        ("click('999')", "there is no element '999'"),
        ("tab_focus(7)", "there is no tab 7"),
        ("go_forward()", "there is no page to go forward to"),
        ("press('3', 'Hyper')", "there is no key 'Hyper'"),
        ("fill('2', 'x')", "it is no field that can be written to"),
    ],
)
def test_errors_are_told_in_the_observation(env, action, error):
    before, _ = env.reset(seed=1)
    obs, reward, terminated, truncated, _ = env.step(action)
    assert error in obs.pop("last_action_error")
    before.pop("last_action_error")
    assert obs == before
    assert (reward, terminated, truncated) == (0.0, False, False)


def test_dialogs_and_refusals_are_told(env):
    env.reset(seed=1, options={"start": "/dialogs"})
    assert play(env, ["click button 'alert'"])["dialogs"] == ("alert accepted: careful",)
    assert play(env, ["click button 'confirm'"])["dialogs"] == ("confirm dismissed: sure?",)
    refused = play(env, ["goto('/outside')"])["refused"]
    assert "https://example.com/picture.png was refused" in " ".join(refused)


def test_refuses_what_is_no_action_and_no_option(env):
    before, _ = env.reset(seed=1)
    with pytest.raises(InvalidActionError, match="an action is a text"):
        env.step(7)
    with pytest.raises(InvalidOptionsError, match=r"got \['speed'\]"):
        env.reset(options={"speed": 2})
    assert env.step("noop(0)")[0]["axtree"] == before["axtree"]


def test_messages_reward_and_end(browser):
    turns: list[Turn] = []

    def reward(turn):
        turns.append(turn)
        return (1.0, True) if turn.site.get_state()["posts"] else 0.25

    env = BrowserEnv(TestSite, start="/form", reward=reward)
    try:
        env.reset(seed=1)
        obs, earned, ended, *_ = env.step("send_msg_to_user('hello')")
        assert (obs["chat_messages"], earned, ended) == (("hello",), 0.25, False)
        moment = env.snapshot()
        play(env, ["fill textbox 'word' 'milk'"])
        obs, earned, ended, *_ = env.step("press('5', 'Enter')")
        assert (earned, ended) == (1.0, True)
        assert turns[-1].messages == ("hello",)
        obs, _ = env.restore(moment)
        assert obs["chat_messages"] == ("hello",)
        *_, ended, _, _ = env.step("report_infeasible('no milk')")
        assert ended
        assert turns[-1].infeasible == "no milk"
    finally:
        env.close()


def test_screenshots_are_observed_and_rendered(browser):
    env = BrowserEnv(
        TestSite, screenshot=True, browser=Options(width=400, height=300), render_mode="rgb_array"
    )
    try:
        obs, _ = env.reset(seed=1, options={"start": "/canvas"})
        assert obs in env.observation_space
        assert obs["screenshot"].shape == (300, 400, 3)
        assert obs["screenshot"].std() > 0
        np.testing.assert_array_equal(env.render(), obs["screenshot"])
        again, _ = env.restore(env.snapshot())
        np.testing.assert_array_equal(again["screenshot"], obs["screenshot"])
    finally:
        env.close()


def test_same_seed_same_episode_other_seed_other_chance(env):
    shown = []
    for seed in (1, 1, 2):
        env.reset(seed=seed, options={"start": "/chance"})
        shown.append(play(env, ["click button 'roll'"])["axtree"])
    assert shown[0] == shown[1] != shown[2]


def test_made_by_its_id_it_forks(browser):
    env = gym.make("sandboxgym/Browser-v0", site="tests.sandboxes.browser.site:TestSite")
    try:
        env.reset(seed=1)
        (fork,) = sg.fork(env, 1)
        assert fork.step("goto('/form')")[0]["title"] == "form"
        assert env.step("noop()")[0]["title"] == "index"
        fork.close()
    finally:
        env.close()


def test_closing_ends_the_site_and_reset_makes_another(browser):
    ended = []

    class Ending(PageSite):
        def close(self):
            ended.append(self)

    env = BrowserEnv(lambda: Ending({"/": "home"}))
    first, _ = env.reset(seed=5)
    site = env._site
    env.close()
    env.close()
    assert ended == [site]
    assert env.reset(seed=5)[0] == first
    assert env._site is not site
    env.close()


def test_a_double_click_is_done_to_one_document(browser):
    leave = "<button onclick=\"location = '/' + 'ab'[n++]\">go</button><script>n = 0</script>"
    site = PageSite({"/": leave, "/a": "<title>a</title>", "/b": "<title>b</title>"})
    env = BrowserEnv(lambda: site)
    try:
        env.reset(seed=1)
        assert play(env, ["dblclick button 'go'"])["title"] == "b"
        assert site.paths == ["/", "/b"]
    finally:
        env.close()


def test_an_answer_that_is_none_is_told(browser):
    split = html("<title>split</title>", ("X-One", "1\r\nSet-Cookie: two=2"))
    env = BrowserEnv(lambda: PageSite({"/": "<title>home</title>", "/split": split}))
    try:
        env.reset(seed=1)
        obs, *_ = env.step("goto('/split')")
        assert (
            "SiteError: https://site.test/split cannot be answered so" in obs["last_action_error"]
        )
        assert obs["title"] == "home"
    finally:
        env.close()


@pytest.mark.parametrize(
    "deeper", ["d.append(e)", "d.attachShadow({mode: 'closed'}).append(e)"], ids=["plain", "shadow"]
)
def test_elements_may_be_nested_deeply(browser, tmp_path, deeper):
    page = f"""<title>deep</title><body><script>
        let e = document.createElement('button')
        e.textContent = 'press'
        e.onclick = () => document.title = 'pressed'
        for (let i = 0; i < 400; i++) {{
            const d = document.createElement('div'); {deeper}; e = d
        }}
        document.body.append(e)</script>"""
    (tmp_path / "index.html").write_text(page)
    env = BrowserEnv(tmp_path)
    try:
        env.reset(seed=1)
        assert play(env, ["click button 'press'"])["title"] == "pressed"
        moment = env.snapshot()
        play(env, ["goto('/elsewhere')"])
        obs, _ = env.restore(moment)
        assert (obs["title"], env.metrics.get("unfaithful_restores", 0)) == ("pressed", 0)
    finally:
        env.close()


def test_what_is_no_text_or_no_function_is_refused(env):
    with pytest.raises(InvalidOptionsError, match=r"texts; got \('/', 5\)"):
        env.reset(options={"goal": 5})
    for reward in ("nowhere:reward", "os:reward", "reward"):
        with pytest.raises(DataNotFoundError, match=f"no function '{reward}' for rewards"):
            BrowserEnv(TestSite, reward=reward)


def test_a_page_with_too_many_nodes_gives_way_to_an_empty_one(browser):
    pages = PageSite(
        {
            "/": "<title>home</title>",
            "/rows": "<title>rows</title><table>" + "<tr><td>row" * 40,
            "/gone": "<title>gone</title><script>for (let i = 0; i < 500; i++)"
            " document.createElement('b')</script>",
        }
    )
    env = BrowserEnv(lambda: pages, browser=Options(limits=Limits(nodes=100)))
    try:
        obs, _ = env.reset(seed=1, options={"start": "/rows"})
        assert "/rows has 127 elements and texts, over the limit of 100" in obs["last_action_error"]
        assert (obs["url"], obs["axtree"]) == ("about:blank", "RootWebArea '', focused")
        with pytest.raises(UncapturedPageError, match="over the limit of 100"):
            env.snapshot()
        for page in ("gone", "home"):  # what is in no document does not count
            obs, *_ = env.step(f"goto('/{page.replace('home', '')}')")
            assert (obs["title"], obs["last_action_error"]) == (page, "")
        assert env.restore(env.snapshot())[0] == obs
    finally:
        env.close()


def test_a_page_that_crashes_as_it_is_looked_at_is_replaced(env):
    env.reset(seed=1)

    async def seen() -> str:
        env._playing.session.active.cdp.post("Page.crash")
        return await env._playing.see()

    assert "the process that showed https://site.test/ crashed" in loop.run(seen(), 60)
    assert env.step("noop(100)")[0]["url"] == "about:blank"
    obs, *_ = env.step("goto('/')")
    assert (obs["title"], obs["last_action_error"]) == ("index", "")


def test_a_page_that_crashes_as_it_is_captured_is_replaced(env):
    env.reset(seed=1)

    async def crash() -> None:
        env._playing.session.active.cdp.post("Page.crash")

    loop.run(crash())
    with pytest.raises(UncapturedPageError, match=r"showed https://site\.test/ crashed"):
        env.snapshot()
    obs, *_ = env.step("goto('/')")
    assert (obs["title"], obs["last_action_error"]) == ("index", "")
    env.restore(env.snapshot())
