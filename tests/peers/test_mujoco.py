from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import sandboxgym as sg
from tests.peers.twins import assert_forks_exactly

mujoco = pytest.importorskip("mujoco", reason="needs MuJoCo: pip install 'sandboxgym[mujoco]'")
pytestmark = [
    pytest.mark.peers,
    pytest.mark.filterwarnings("ignore:.*is out of date"),
]

ROBOTS = [
    name
    for name, spec in gym.registry.items()
    if str(spec.entry_point).startswith("gymnasium.envs.mujoco") and name.endswith("-v5")
]


def native(name: str, **kwargs: Any) -> gym.Env[Any, Any]:
    return sg.forkable(gym.make(name, **kwargs), mechanism="native")


def test_all_of_gymnasiums_robots_are_here():
    assert len(ROBOTS) == 11


@pytest.mark.parametrize("name", ROBOTS)
def test_forks_are_exact(name):
    assert_forks_exactly(native(name), native(name), gym.make(name), trips=12)


def test_all_observations_that_a_robot_offers_are_exact():
    kwargs = {"exclude_current_positions_from_observation": False, "contact_cost_weight": 0.1}
    envs = [native("Humanoid-v5", **kwargs) for _ in range(2)]
    assert_forks_exactly(*envs, gym.make("Humanoid-v5", **kwargs), trips=12)


def test_the_state_that_is_integrated_is_not_enough():
    """Why what MuJoCo computed on the way is captured too: the distance covered comes from it."""
    here, there = gym.make("Ant-v5").unwrapped, gym.make("Ant-v5").unwrapped
    here.reset(seed=0)
    there.reset(seed=1)
    here.action_space.seed(0)
    for _ in range(10):
        here.step(here.action_space.sample())
    kind = mujoco.mjtState.mjSTATE_INTEGRATION
    state = np.empty(mujoco.mj_stateSize(here.model, kind))
    mujoco.mj_getState(here.model, here.data, state, kind)
    mujoco.mj_setState(there.model, there.data, state, kind)
    mujoco.mj_forward(there.model, there.data)
    action = here.action_space.sample()
    assert here.step(action)[4]["x_velocity"] != there.step(action)[4]["x_velocity"]


@pytest.mark.parametrize("name", ["Reacher-v5", "Pusher-v5"])
def test_the_goal_goes_along(name):
    here, there = native(name), native(name)
    here.reset(seed=0)
    there.reset(seed=1)
    moment = sg.snapshot(here)
    assert sg.state_digest(there) != moment.digest
    sg.restore(there, moment)
    assert sg.state_digest(there) == moment.digest
    for attribute in ("goal", "goal_pos", "cylinder_pos"):
        if hasattr(here.unwrapped, attribute):
            found = getattr(there.unwrapped, attribute)
            np.testing.assert_array_equal(found, getattr(here.unwrapped, attribute))


def test_a_changed_model_is_refused():
    here, there = native("Hopper-v5"), native("Hopper-v5")
    here.reset(seed=0)
    there.reset(seed=0)
    here.unwrapped.model.body_mass[1] *= 2
    with pytest.raises(sg.SandboxGymError, match="model"):
        sg.restore(there, sg.snapshot(here))
    there.unwrapped.model.body_mass[1] *= 2
    sg.restore(there, sg.snapshot(here))
    there.unwrapped.model.opt.gravity[2] = -1.0
    with pytest.raises(sg.SandboxGymError, match="model"):
        sg.restore(there, sg.snapshot(here))


def test_a_changed_attribute_goes_along():
    here, there = native("Hopper-v5"), native("Hopper-v5")
    here.reset(seed=0)
    here.unwrapped.frame_skip = 2
    sg.restore(there, sg.snapshot(here))
    assert there.unwrapped.frame_skip == 2


def test_a_robot_of_ones_own_is_not_guessed_at():
    from gymnasium.envs.mujoco.hopper_v5 import HopperEnv

    class MyHopper(HopperEnv):
        def step(self, action: Any) -> Any:
            return super().step(action * self.data.ncon)

    with pytest.raises(sg.SandboxGymError, match="MyHopper"):
        sg.forkable(MyHopper(), mechanism="native", factory=MyHopper)


def test_a_snapshot_shows_the_same_picture_where_it_is_restored():
    make = {"name": "HalfCheetah-v5", "render_mode": "rgb_array", "width": 64, "height": 64}
    try:
        here, there = native(**make), native(**make)
        here.reset(seed=0)
        here.step(here.action_space.sample())
        picture = here.render()
    except Exception as error:  # noqa: BLE001 - whatever MuJoCo's OpenGL says
        pytest.skip(f"MuJoCo cannot draw on this machine: {error}")
    sg.restore(there, sg.snapshot(here))
    np.testing.assert_array_equal(there.render(), picture)
