from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import pytest

import sandboxgym
from sandboxgym.sandboxes.browser import loop
from sandboxgym.sandboxes.browser.miniwob import tasks
from sandboxgym.sandboxes.browser.miniwob.env import MiniWoBEnv
from sandboxgym.sandboxes.browser.miniwob.policy import elements
from sandboxgym.sandboxes.browser.session import Session
from sandboxgym.sandboxes.browser.sites import ORIGIN, Request, Response


@pytest.fixture
def made() -> Iterator[Any]:
    """Makes environments, which are closed at the end."""
    envs: list[MiniWoBEnv] = []

    def make(task: str, **kwargs: Any) -> MiniWoBEnv:
        envs.append(MiniWoBEnv(task, **kwargs))
        return envs[-1]

    yield make
    for env in envs:
        env.close()


def bid(obs: dict[str, Any], role: str, name: str) -> str:
    """The id of the first element with a role and a name."""
    return next(e.bid for e in elements(obs["axtree"]) if (e.role, e.name) == (role, name))


class AsTheyAre:
    """The wheel's files, and nothing added."""

    origin = ORIGIN

    def respond(self, request: Request) -> Response:
        path = tasks.folder() / request.url.removeprefix(ORIGIN + "/")
        return Response(200, (("Content-Type", _KIND[path.suffix]),), path.read_bytes())

    def get_state(self) -> Any:
        return {}

    def set_state(self, state: Any) -> None:
        pass


_KIND = {".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css"}


async def as_miniwob_does(name: str, seed: int) -> Any:
    """What MiniWoB++'s own environment asks a page to do for a seed, and what it reads then."""
    session = await Session.start(AsTheyAre())
    await session.open(tasks.task(name).page)
    found = await session.active.cdp.send(
        "Runtime.evaluate",
        expression=f"""Math.seedrandom({seed}); core.setDataMode("train"); core.startEpisodeReal();
            [core.getUtterance(), document.getElementById("wrap").innerText]""",
        returnByValue=True,
    )
    await session.close()
    return found["result"]["value"]


@pytest.mark.parametrize("name", ["click-button", "enter-password", "unicode-test"])
def test_a_seed_gives_the_problem_that_miniwob_gives(made: Any, name: str) -> None:
    utterance, text = loop.run(as_miniwob_does(name, 7))
    env = made(name)
    obs, _ = env.reset(seed=7)
    assert obs["utterance"] == obs["goal"] == utterance
    shown = loop.run(
        env._playing.session.active.evaluate('document.getElementById("wrap").innerText')
    )
    assert shown == text
    assert env.reset(seed=8)[0]["axtree"] != obs["axtree"]


def test_an_unseeded_reset_gives_problems_of_the_generator(made: Any) -> None:
    env, twin = made("enter-text"), made("enter-text")
    first, _ = env.reset(seed=7)
    second, _ = env.reset()
    assert second["utterance"] != first["utterance"]
    twin.reset(seed=7)
    assert twin.reset()[0] == second


def test_solving_pays_less_the_longer_it_takes_in_virtual_time(made: Any) -> None:
    env = made("click-test")
    rewards = []
    for wait in (0, 1000, 2000):
        obs, info = env.reset(seed=7)
        assert info == {"raw_reward": 0.0, "reason": ""}
        _, reward, terminated, _, _ = env.step(f"noop({wait})")
        assert (reward, terminated) == (0.0, False)
        obs, reward, terminated, truncated, info = env.step(
            f"click({bid(obs, 'button', 'Click Me!')!r})"
        )
        assert (terminated, truncated, info["raw_reward"]) == (True, False, 1.0)
        rewards.append(reward)
    assert 0.9 < rewards[0] < 1
    assert rewards[1] - rewards[2] == pytest.approx(0.1)  # a second of ten


def test_a_mistake_ends_the_episode_with_minus_one_and_the_reason(made: Any) -> None:
    env = made("click-test-2")
    obs, _ = env.reset(seed=7)
    assert obs["utterance"] == "Click button ONE."
    _, reward, terminated, _, info = env.step(f"click({bid(obs, 'button', 'TWO')!r})")
    assert (reward, terminated, info["raw_reward"]) == (-1.0, True, -1.0)


def test_an_episode_ends_when_the_time_of_its_task_is_up(made: Any) -> None:
    env = made("click-test", action_ms=1000)
    env.reset(seed=7)
    steps, terminated = 0, False
    while not terminated:
        _, reward, terminated, truncated, info = env.step("noop(0)")
        steps += 1
        assert not truncated
    assert (reward, info) == (-1.0, {"raw_reward": -1.0, "reason": "timed out"})
    assert steps in (9, 10)  # of 10 s, some went by before the first


def test_the_page_of_a_task_cannot_be_loaded_again(made: Any) -> None:
    env = made("enter-text")
    obs, _ = env.reset(seed=7)
    box = next(e.bid for e in elements(obs["axtree"]) if e.role == "textbox")
    env.step(f"fill({box!r}, 'draft')")
    obs, reward, terminated, _, _ = env.step("goto('/miniwob/enter-text.html')")
    assert "draft" in obs["axtree"]
    assert (reward, terminated) == (0.0, False)


def test_leaving_the_page_of_a_task_ends_the_episode(made: Any) -> None:
    env = made("click-test")
    env.reset(seed=7)
    _, reward, terminated, _, info = env.step("goto('/core/core.css')")
    assert (reward, terminated) == (-1.0, True)
    assert "left" in info["reason"]


def test_a_task_in_a_frame_can_be_seen_and_acted_on(made: Any) -> None:
    env = made("flight.Alaska")
    obs, _ = env.reset(seed=7)
    assert ("Departure City", "Las Vegas") in obs["fields"]
    box = next(e.bid for e in elements(obs["axtree"]) if e.role in ("textbox", "combobox"))
    obs, *_ = env.step(f"fill({box!r}, 'Portland')")
    assert obs["last_action_error"] == ""
    assert "Portland" in obs["axtree"]


def test_made_by_its_name_it_is_forkable_and_observations_are_of_its_space() -> None:
    env = gym.make("sandboxgym/MiniWoB-v0", task="login-user", screenshot=True)
    obs, _ = env.reset(seed=7)
    assert env.observation_space.contains(obs)
    assert obs["screenshot"].shape == (320, 500, 3)
    user = next(e.bid for e in elements(obs["axtree"]) if e.role == "textbox")
    action = f"fill({user!r}, {dict(obs['fields'])['username']!r})"
    (fork,) = sandboxgym.fork(env, 1)
    ours, theirs = env.step(action), fork.step(action)
    assert (ours[0].pop("screenshot") == theirs[0].pop("screenshot")).all()
    assert ours == theirs
    fork.close()
    env.close()
