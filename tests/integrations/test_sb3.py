"""With Stable-Baselines3 itself: its checks, its algorithms, and what its own VecEnvs return."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="needs: pip install 'sandboxgym[sb3]'")
pytestmark = pytest.mark.peers

from gymnasium.wrappers import TimeLimit  # noqa: E402
from stable_baselines3 import DQN  # noqa: E402
from stable_baselines3.common.monitor import Monitor  # noqa: E402
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor  # noqa: E402

from sandboxgym.core.errors import LaneBusyError  # noqa: E402
from sandboxgym.integrations.sb3.vec_env import SandboxVecEnv  # noqa: E402
from tests.integrations.pages import run_page  # noqa: E402

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import menu  # noqa: E402
import sb3_starts as example  # noqa: E402


@pytest.fixture
def envs():
    made = SandboxVecEnv(menu.make_menu_env, 3, workers=2)
    made.seed(0)
    made.reset()
    yield made
    made.close()


def actions(rng, lanes=3):
    return rng.integers(menu.CHOICES, size=lanes)


def test_it_returns_what_a_dummy_vec_env_returns(envs):
    dummy = DummyVecEnv([menu.make_menu_env] * 3)
    dummy.seed(5)
    envs.seed(5)
    np.testing.assert_array_equal(envs.reset(), dummy.reset())
    rng = np.random.default_rng(0)
    ended = 0
    for _ in range(45):  # past the end of two episodes
        chosen = actions(rng)
        ours, theirs = envs.step(chosen), dummy.step(chosen)
        for one, other in zip(ours[:3], theirs[:3], strict=True):
            np.testing.assert_array_equal(one, other)
            assert one.dtype == other.dtype
        for one, other in zip(ours[3], theirs[3], strict=True):
            assert one.keys() == other.keys()
            assert one["TimeLimit.truncated"] == other["TimeLimit.truncated"]
            assert one["admissible_commands"] == other["admissible_commands"]
            if "terminal_observation" in one:
                np.testing.assert_array_equal(
                    one["terminal_observation"], other["terminal_observation"]
                )
        assert envs.reset_infos == dummy.reset_infos
        ended += int(ours[2].sum())
    assert ended >= 6
    dummy.close()


def test_seeds_and_options_are_for_the_next_reset_alone(envs):
    seeded = SandboxVecEnv("FrozenLake-v1", 2)
    seeded.seed(7)
    seeded.reset()
    assert seeded.get_attr("np_random_seed") == [7, 8]
    seeded.close()
    envs.set_options({"index": 5})
    with pytest.raises(ValueError, match="index"):
        envs.reset()
    envs.set_options({})
    envs.reset()


def test_a_lane_goes_back_and_others_go_on_from_it(envs):
    rng = np.random.default_rng(1)
    envs.step(actions(rng))
    moment = envs.snapshot(0)
    there = envs.step(np.zeros(3, int))
    back = envs.restore({0: moment})
    np.testing.assert_array_equal(back[1:], there[0][1:])
    again = envs.step(np.zeros(3, int))
    np.testing.assert_array_equal(again[0][0], there[0][0])
    batch = envs.branch(0, [1, 2])
    np.testing.assert_array_equal(batch[0], batch[1])
    np.testing.assert_array_equal(batch[0], batch[2])
    obs, *_ = envs.step(np.full(3, 1))
    assert (obs[0] == obs).all()


def test_episodes_begin_where_they_are_told(envs):
    moments = menu.moments_of_a_plan()
    envs.begin = lambda lane: moments[-1] if lane == 1 else None
    obs = envs.reset()
    assert (obs[0] == obs[1]).all()
    done = np.zeros(3, bool)
    while not done.any():
        obs, _, done, infos = envs.step(np.full(3, 15))
    assert done.all()
    assert (obs[0] == obs[2]).all()
    assert (obs[0] != obs[1]).any()
    assert "move spraybottle 1 to garbagecan 1" in envs.reset_infos[1]["admissible_commands"]
    assert "move spraybottle 1 to garbagecan 1" not in infos[1]["admissible_commands"]
    last = menu.useful(envs.reset_infos[1]).index("move spraybottle 1 to garbagecan 1")
    _, rewards, done, infos = envs.step(np.array([15, last, 15]))
    assert rewards.tolist() == [0.0, 1.0, 0.0]
    assert done.tolist() == [False, True, False]
    assert infos[1]["TimeLimit.truncated"] is False


def test_a_worker_that_dies_is_not_seen(envs):
    calm = SandboxVecEnv(menu.make_menu_env, 3, workers=1)
    calm.seed(0)
    calm.reset()
    rng = np.random.default_rng(2)
    for number in range(25):
        chosen = actions(rng)
        if number == 10:
            os.kill(envs.pool._crew.posts[0].link.pid, signal.SIGKILL)
        np.testing.assert_array_equal(envs.step(chosen)[0], calm.step(chosen)[0])
    assert envs.pool.take_restarts()
    calm.close()


def test_it_says_by_which_wrappers_environments_are_wrapped(envs):
    assert envs.env_is_wrapped(TimeLimit) == [True] * 3
    assert envs.env_is_wrapped(Monitor, indices=[0]) == [False]
    assert not envs.has_attr("no_such_thing")
    assert envs.get_attr("said", indices=1) == [[]]


def test_a_step_that_was_not_begun_is_refused(envs):
    with pytest.raises(LaneBusyError, match="step_async"):
        envs.step_wait()
    envs.step_async(np.zeros(3, int))
    with pytest.raises(LaneBusyError, match="step_wait"):
        envs.step_async(np.zeros(3, int))
    envs.step_wait()


def test_an_algorithm_that_learns_off_policy_runs_too():
    envs = VecMonitor(SandboxVecEnv("CartPole-v1", 2, workers=1))
    model = DQN("MlpPolicy", envs, learning_starts=50, device="cpu", seed=0)
    model.learn(300)
    assert model.num_timesteps >= 300
    assert len(model.ep_info_buffer) > 3
    envs.close()


def test_images_come_from_the_environments():
    pictures = SandboxVecEnv("CartPole-v1", 1, env_kwargs={"render_mode": "rgb_array"})
    pictures.reset()
    (image,) = pictures.get_images()
    assert image.ndim == 3
    pictures.close()


def test_the_example_learns_along_the_plan():
    won = example.main()
    assert won["along the plan"] >= 0.8
    assert won["from the start"] < won["along the plan"]


def test_the_examples_of_the_page_run(tmp_path):
    run_page("sb3", tmp_path)
