"""With RLlib itself: its runner and its PPO, on sandboxes of ours."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ray.rllib", reason="needs RLlib: pip install 'sandboxgym[rllib]'")
pytestmark = pytest.mark.peers

from ray.rllib.algorithms.ppo import PPOConfig  # noqa: E402

from sandboxgym.core.errors import NotForkableError  # noqa: E402
from sandboxgym.integrations.rllib.runner import COMPONENT, SandboxEnvRunner  # noqa: E402
from sandboxgym.integrations.rllib.vector import MODE, register_sandboxes  # noqa: E402
from tests.integrations.pages import run_page  # noqa: E402

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import menu  # noqa: E402
import rllib_resume as example  # noqa: E402


def runner(lanes: int = 3, worker: int = 0) -> SandboxEnvRunner:
    config = (
        PPOConfig()
        .environment(register_sandboxes("household", menu.make_menu_env, workers=1))
        .env_runners(num_env_runners=0, num_envs_per_env_runner=lanes, gym_env_vectorize_mode=MODE)
        .debugging(seed=1)
    )
    return SandboxEnvRunner(config=config, worker_index=worker)


@pytest.fixture(autouse=True)
def a_cluster_of_its_own(monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "local")  # and not one that runs on this machine


@pytest.fixture
def made():
    runners = []

    def make(**kwargs):
        runners.append(runner(**kwargs))
        return runners[-1]

    yield make
    for one in runners:
        one.stop()


def seen(episodes):
    """What was played, without the times and the random names of episodes."""
    return [
        (e.t_started, np.asarray(e.observations), np.asarray(e.actions), list(e.rewards), e.is_done)
        for e in episodes
    ]


def assert_same(ours, theirs):
    assert len(ours) == len(theirs) > 0
    for one, other in zip(ours, theirs, strict=True):
        assert one[0] == other[0]
        np.testing.assert_array_equal(one[1], other[1])
        np.testing.assert_array_equal(one[2], other[2])
        assert one[3:] == other[3:]


@pytest.mark.parametrize("before", [24, 60])  # in the middle of episodes, and as they end
def test_another_runner_goes_on_in_the_middle_of_the_episodes(made, before):
    first = made()
    first.sample(num_timesteps=before, explore=False)
    state = first.get_state()
    other = made()
    other.set_state(state)
    assert [e.id_ for e in other._ongoing_episodes] == [e.id_ for e in first._ongoing_episodes]
    for length in (12, 30):  # the second one goes beyond the end of the episodes
        assert_same(
            seen(other.sample(num_timesteps=length, explore=False)),
            seen(first.sample(num_timesteps=length, explore=False)),
        )


def test_a_state_is_not_changed_by_who_goes_on_from_it(made):
    first = made()
    first.sample(num_timesteps=24, explore=False)
    state = first.get_state()
    plays = []
    for _ in range(2):
        first.set_state(state)
        plays.append(seen(first.sample(num_timesteps=30, explore=False)))
    assert_same(*plays)


def test_weights_travel_without_sandboxes(made):
    first = made()
    assert COMPONENT not in first.get_state()  # nothing was played
    first.sample(num_timesteps=6)
    assert COMPONENT in first.get_state()
    assert COMPONENT not in first.get_state(components="rl_module")
    assert COMPONENT not in first.get_state(not_components=COMPONENT)


def test_the_sandboxes_of_another_runner_are_left_to_it(made):
    first, other = made(worker=1), made(worker=2)
    first.sample(num_timesteps=24, explore=False)
    state = first.get_state()
    other.set_state(state)
    assert other._needs_initial_reset


def test_another_number_of_sandboxes_is_refused(made):
    first, other = made(), made(lanes=2)
    first.sample(num_timesteps=6)
    with pytest.raises(ValueError, match="num_envs_per_env_runner"):
        other.set_state(first.get_state())


def test_environments_of_another_kind_are_refused():
    config = PPOConfig().environment("CartPole-v1").env_runners(num_env_runners=0)
    plain = SandboxEnvRunner(config=config)
    plain.sample(num_timesteps=4)
    with pytest.raises(NotForkableError, match=r"config\.environment"):
        plain.get_state()
    plain.stop()


def test_the_example_trains_and_goes_on_from_a_checkpoint(tmp_path):
    before, after = example.main(tmp_path)
    assert before == after
    assert any(steps > 0 for steps in before)


def test_the_examples_of_the_page_run(tmp_path):
    run_page("rllib", tmp_path)
