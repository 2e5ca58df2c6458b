"""Any stack that Gymnasium itself accepts, in any order, goes on exactly."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium import wrappers
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import sandboxgym as sg
from sandboxgym.core import errors
from tests.core.wrapper_rules.exactness import assert_exact, begin, play
from tests.core.wrapper_rules.worlds import Drift


def negated(value):
    return -value


def unchanged(value):
    return value


LAYERS = {
    "TimeLimit 4": lambda env: wrappers.TimeLimit(env, 4),
    "TimeLimit 9": lambda env: wrappers.TimeLimit(env, 9),
    "Autoreset": wrappers.Autoreset,
    "PassiveEnvChecker": wrappers.PassiveEnvChecker,
    "OrderEnforcing": wrappers.OrderEnforcing,
    "statistics": wrappers.RecordEpisodeStatistics,
    "more statistics": lambda env: wrappers.RecordEpisodeStatistics(env, stats_key="more"),
    "delay": lambda env: wrappers.DelayObservation(env, 2),
    "float64": lambda env: wrappers.DtypeObservation(env, np.float64),
    "filter": lambda env: wrappers.FilterObservation(env, ["where"]),
    "flatten": wrappers.FlattenObservation,
    "stack 2": lambda env: wrappers.FrameStackObservation(env, 2),
    "stack 3": lambda env: wrappers.FrameStackObservation(env, 3, padding_type="zero"),
    "gray": wrappers.GrayscaleObservation,
    "transform": lambda env: wrappers.TransformObservation(env, unchanged, None),
    "bins": lambda env: wrappers.DiscretizeObservation(env, 3, multidiscrete=True),
    "skip": lambda env: wrappers.MaxAndSkipObservation(env, 2),
    "normalize": wrappers.NormalizeObservation,
    "render": lambda env: wrappers.AddRenderObservation(env, render_only=False),
    "resize": lambda env: wrappers.ResizeObservation(env, (6, 5)),
    "rescale": lambda env: wrappers.RescaleObservation(env, np.float32(0), np.float32(1)),
    "time": wrappers.TimeAwareObservation,
    "time apart": lambda env: wrappers.TimeAwareObservation(env, flatten=False),
    "atari": lambda env: wrappers.AtariPreprocessing(env, frame_skip=2, noop_max=3, screen_size=6),
    "atari lives": lambda env: wrappers.AtariPreprocessing(
        env, frame_skip=1, noop_max=0, screen_size=6, terminal_on_life_loss=True
    ),
    "clip action": wrappers.ClipAction,
    "action bins": lambda env: wrappers.DiscretizeAction(env, 3),
    "rescale action": lambda env: wrappers.RescaleAction(env, np.float32(0), np.float32(2)),
    "sticky": lambda env: wrappers.StickyAction(env, 0.4),
    "stickier": lambda env: wrappers.StickyAction(env, 0.6, (1, 3)),
    "clip reward": lambda env: wrappers.ClipReward(env, -0.5, 0.5),
    "transform reward": lambda env: wrappers.TransformReward(env, negated),
    "normalize reward": wrappers.NormalizeReward,
    "noise": lambda env: wrappers.AddWhiteNoise(env, 0.3),
    "patches": lambda env: wrappers.ObstructView(env, 0.3, 2),
    "frames": lambda env: wrappers.RenderCollection(env),
    "all frames": lambda env: wrappers.RenderCollection(env, pop_frames=False, reset_clean=False),
    "torch": lambda env: wrappers.NumpyToTorch(env),
    "front": sg.Forkable,
}
if hasattr(wrappers, "RepeatAction"):
    LAYERS["repeat"] = lambda env: wrappers.RepeatAction(env, 2)
WORLDS = [
    {"sees": sees, "acts": acts, "render_mode": mode}
    for sees in ("box", "image", "dict")
    for acts in ("discrete", "box")
    for mode in (None, "rgb_array")
]


def build(world, names):
    env = Drift(**world)
    env.np_random = np.random.default_rng(0)  # AddRenderObservation resets without a seed
    for name in names:
        env = LAYERS[name](env)
    return env


def is_playable(world, names):
    """Whether Gymnasium takes this stack: builds it, and plays it through some endings."""
    try:
        env = build(world, [name for name in names if name != "front"])
        begin(env, 1)
        play(env, 60)
    except errors.SandboxGymError:
        raise
    except Exception:  # noqa: BLE001 - wrappers raise all kinds for what they do not take
        return False
    return True


@pytest.mark.filterwarnings("ignore")
@given(
    world=st.sampled_from(WORLDS),
    wanted=st.lists(st.sampled_from(sorted(LAYERS)), min_size=1, max_size=12),
    seed=st.integers(0, 50),
    before=st.integers(0, 12),
)
@settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
def test_any_stack_goes_on_exactly(world, wanted, seed, before):
    names = []
    for name in wanted:
        if len(names) < 5 and is_playable(world, [*names, name]):
            names.append(name)
    assume(names)
    assert_exact(lambda: sg.Forkable(build(world, names)), seed=seed, before=before, after=6)
