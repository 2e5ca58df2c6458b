"""The shop in a real browser: the same episodes as in text mode, and forks in the middle."""

import random
import re

import numpy as np
import pytest

import sandboxgym as sg
from sandboxgym.core.errors import EpisodeEndedError, InvalidActionError, InvalidOptionsError
from sandboxgym.sandboxes.webshop.browser_env import WebShopBrowserEnv
from sandboxgym.sandboxes.webshop.env import WebShopEnv
from tests.sandboxes.webshop.recorded import RecordedEnv

pytestmark = pytest.mark.usefixtures("browser")


@pytest.fixture
def make():
    made = []

    def new(**arguments):
        made.append(WebShopBrowserEnv(**arguments))
        return made[-1]

    yield new
    for env in made:
        env.close()


@pytest.fixture(scope="module")
def recorded(shared_data):
    env = RecordedEnv(str(shared_data / "webshop"))
    yield env
    env.close()


def bid(obs, line):
    """The id of the element whose line in the tree begins like this."""
    found = re.search(rf"\[(\d+)\] {line}", obs["axtree"])
    assert found, obs["axtree"]
    return found[1]


def replay(env, number):
    """Play a recorded episode, and compare every page and every reward."""
    episode = env.episodes[number]
    obs, info = env.reset(options={"goal": number})
    assert obs["goal"] == episode["goal"]["instruction_text"]
    assert env.page_text() == episode["obs0"]
    assert info["clickables"] == episode["click0"]
    for step in episode["steps"]:
        _, reward, done, _, info = env.step(step["action"])
        assert (reward, done) == (step["reward"], step["done"])
        assert env.page_text() == step["obs"]
        assert info["clickables"] == step["clickables"]


def by_length(episodes):
    return sorted(range(len(episodes)), key=lambda number: len(episodes[number]["steps"]))


def test_recorded_episodes_read_and_earn_what_they_did_in_the_original(recorded):
    bought = [n for n in by_length(recorded.episodes) if recorded.episodes[n]["steps"][-1]["done"]]
    for number in bought[20:24]:
        replay(recorded, number)


@pytest.mark.slow
@pytest.mark.parametrize("tens", range(10))
def test_a_hundred_recorded_episodes_read_and_earn_what_they_did(recorded, tens):
    for number in range(10 * tens, 10 * tens + 10):
        replay(recorded, number)


def test_both_faces_draw_the_same_goals_and_say_the_same(make):
    text, browser = WebShopEnv("test"), make(split="test", actions="webshop")
    assert browser.num_goals == text.num_goals
    rng = random.Random(4)
    odd = ['search[it\'s <b>"a"</b> \\ lamp &amp; \u00e9\U0001f600]', "click[search]", "buy", "[]"]
    for seed in (1, 2):
        page, info = text.reset(seed=seed)
        obs, same_info = browser.reset(seed=seed)
        assert same_info == info
        for _ in range(8):
            assert browser.page_text() == page
            action = rng.choice([*odd, *info["admissible_commands"], *info["clickables"][-9:]])
            page, reward, done, _, info = text.step(action)
            obs, *same, same_info = browser.step(action)
            assert same == [reward, done, False]
            assert same_info == info
            assert bool(obs["last_action_error"]) is not info["valid"]
            if done:
                assert browser.page_text() == page
                break


def test_shopping_by_browser_actions(make):
    env = make(split="test")
    obs, info = env.reset(options={"goal": 0})
    asin = env.session.goal.asin
    assert obs["goal"] == info["instruction"]
    assert "admissible_commands" not in info
    title = env.session.goal.title.replace("'", " ")
    obs, *_ = env.step(f"fill('{bid(obs, 'textbox')}', '{title}')")
    obs, *_ = env.step(f"click('{bid(obs, 'button .Search')}')")
    obs, *_ = env.step(f"click('{bid(obs, f'link .{asin}')}')")
    for value in env.session.goal.options.values():
        obs, reward, *_ = env.step(f"click('{bid(obs, f'radio .{value}.,')}')")
        assert reward == 0.0
        assert f"radio '{value}', checked='true'" in obs["axtree"]
    obs, *_ = env.step(f"click('{bid(obs, 'link .Features')}')")
    obs, *_ = env.step("go_back()")
    obs, reward, done, _, info = env.step(f"click('{bid(obs, 'button .Buy Now')}')")
    assert (reward, done, info["won"]) == (1.0, True, True)
    assert info["reward_parts"]["total"] == 1.0
    with pytest.raises(EpisodeEndedError):
        env.step("go_back()")


def test_an_address_made_up_by_the_agent_buys_nothing(make):
    env = make()
    env.reset(seed=1)
    goal = env.session.goal
    _, reward, done, _, _ = env.step(f"goto('/done/{goal.asin}?q=x&page=1')")
    assert (reward, done) == (0.0, False)
    obs, *_ = env.step(f"""goto('/item/{goal.asin}?q=x&options=[["color","made up"]]')""")
    assert "no such page" in obs["axtree"]


def test_forks_in_the_middle_go_their_own_ways(make):
    env = make(split="test", actions="webshop", screenshot=True)
    env.reset(seed=3)
    goal = env.session.goal
    env.step(f"search[{goal.title.lower()}]")
    env.step(f"click[{goal.asin.lower()}]")
    before = env.screenshot()
    left, right = sg.fork(env, 2)
    try:
        assert left.screenshot() == right.screenshot() == before
        assert left.page_text() == right.page_text() == env.page_text()
        _, bought, done, _, _ = left.step("click[buy now]")
        assert done
        assert not right.session.done
        assert not env.session.done
        for fork in (right, env):
            _, reward, done, _, _ = fork.step("click[description]")
            assert (reward, done) == (0.0, False)
        assert right.state_digest() == env.state_digest()
        env.step("click[< prev]")
        assert env.step("click[buy now]")[1] == bought
    finally:
        left.close()
        right.close()


def test_a_snapshot_brings_back_what_was_typed_and_travels_as_bytes(make):
    env = make(split="test")
    obs, _ = env.reset(seed=5)
    obs, *_ = env.step(f"fill('{bid(obs, 'textbox')}', 'half a thought')")
    snapshot = sg.Snapshot.from_bytes(env.snapshot().to_bytes())
    later = [env.step("keyboard_press('Enter')")[0] for _ in range(1)]
    twin = make(split="test")
    seen, _ = twin.restore(snapshot)
    assert seen == obs
    assert "half a thought" in seen["axtree"]
    assert [twin.step("keyboard_press('Enter')")[0] for _ in range(1)] == later
    assert twin.state_digest() == env.state_digest()


def test_after_a_purchase_a_snapshot_leads_back_before_it(make):
    env = make(split="test", actions="webshop")
    env.reset(seed=6)
    before = env.snapshot()
    env.step("search[lamp]")
    env.step(f"click[{next(t for t in env._info(True)['clickables'] if t.startswith('sg'))}]")
    _, reward, done, _, _ = env.step("click[buy now]")
    after = env.snapshot()
    assert done
    env.restore(before)
    assert not env.session.done
    assert env.session.page.has_search_box
    _, info = env.restore(after)
    assert env.session.done
    assert info["reward_parts"]["total"] == reward


def test_where_the_page_was_lost_actions_of_text_mode_say_so(make):
    env = make(actions="webshop")
    env.reset(seed=1)
    env._run(env._playing.session.open("/nowhere"))
    for action in ("search[lamp]", "click[back to search]"):
        obs, reward, done, _, info = env.step(action)
        assert (reward, done, info["valid"]) == (0.0, False, False)
        assert "not possible" in obs["last_action_error"]


def test_what_is_no_goal_or_no_action_is_refused(make):
    env = make(actions="webshop")
    env.reset(seed=1)
    with pytest.raises(InvalidOptionsError, match="goal=-1"):
        env.reset(options={"goal": -1})
    with pytest.raises(InvalidActionError, match="int"):
        env.step(7)
    with pytest.raises(ValueError, match="actions='mouse': choose among browser, webshop"):
        make(actions="mouse")
    env.step("search[still here]")


def test_observations_are_in_the_space_with_a_picture(make):
    env = make(screenshot=True, render_mode="rgb_array")
    obs, _ = env.reset(seed=2)
    assert env.observation_space.contains(obs)
    assert np.array_equal(env.render(), obs["screenshot"])
    assert len(np.unique(obs["screenshot"].reshape(-1, 3), axis=0)) > 50
