from __future__ import annotations

import gymnasium as gym
import pytest

import sandboxgym as sg
from tests.peers.twins import assert_forks_exactly

TAXI = "Taxi-v4" if "Taxi-v4" in gym.registry else "Taxi-v3"
pytestmark = pytest.mark.filterwarnings("ignore:.*is out of date")


@pytest.mark.parametrize("name", ["FrozenLake-v1", "CliffWalking-v1", TAXI])
def test_forks_are_exact(name):
    envs = [sg.forkable(gym.make(name), mechanism="native") for _ in range(2)]
    assert_forks_exactly(*envs, gym.make(name), trips=20, gap=6)


@pytest.mark.parametrize("name", ["FrozenLake-v1", "CliffWalking-v1", TAXI])
def test_drawing_is_no_state(name, monkeypatch):
    pytest.importorskip("pygame", reason="needs pygame to draw")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    here, there = (
        sg.forkable(gym.make(name, render_mode="rgb_array"), mechanism="native") for _ in range(2)
    )
    here.reset(seed=0)
    before = sg.state_digest(here)
    picture = here.render()
    assert sg.state_digest(here) == before
    sg.restore(there, sg.snapshot(here))
    assert (there.render() == picture).all()


def test_the_table_of_transitions_is_not_in_the_state():
    env = sg.forkable(gym.make(TAXI), mechanism="native")
    env.reset(seed=0)
    assert len(sg.snapshot(env).to_bytes()) < 10_000


def test_another_map_is_refused_though_the_arguments_are_the_same():
    here, there = (
        sg.forkable(gym.make("FrozenLake-v1", map_name=None), mechanism="native") for _ in range(2)
    )
    here.reset(seed=0)
    with pytest.raises(sg.SandboxGymError, match=r"map|differ"):
        sg.restore(there, sg.snapshot(here))
