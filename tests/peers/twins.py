"""Comparing an environment that is forked with a plain one that is not."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

import sandboxgym as sg
from sandboxgym.core.digest import first_difference
from sandboxgym.core.plain import owned

AnyEnv = gym.Env[Any, Any]


def step(env: AnyEnv, action: Any) -> list[Any]:
    return list(owned(env.step(action)))


def assert_equal(found: Any, expected: Any) -> None:
    difference = first_difference(found, expected)
    assert difference is None, str(difference)


def play_alike(env: AnyEnv, twin: AnyEnv, seed: int, steps: int) -> list[Any]:
    """Reset both and play them alike; the last result."""
    rng = np.random.default_rng(seed)
    twin.action_space.seed(seed)
    assert_equal(list(owned(env.reset(seed=seed))), list(owned(twin.reset(seed=seed))))
    last: list[Any] = []
    for _ in range(steps):
        if last and (last[2] or last[3]):
            again = int(rng.integers(1000))
            assert_equal(list(owned(env.reset(seed=again))), list(owned(twin.reset(seed=again))))
        action = twin.action_space.sample()
        last = step(twin, action)
        assert_equal(step(env, action), last)
    if last and (last[2] or last[3]):
        env.reset(seed=seed)
        twin.reset(seed=seed)
    return last


def assert_forks_exactly(
    env: AnyEnv, other: AnyEnv, twin: AnyEnv, *, trips: int = 6, gap: int = 25, seed: int = 3
) -> None:
    """Restore snapshots of `env` in `env` itself, which went away, and in a used `other`."""
    play_alike(env, twin, seed, gap)
    rng = np.random.default_rng(seed)
    over = False
    for trip in range(trips):
        target = other if trip % 2 else env
        moment = sg.snapshot(env)
        if trip > 1 or target is env:
            _wander(target, twin, int(rng.integers(8)), trip)
        obs, info = sg.restore(target, moment)
        assert_equal([obs, info], [moment.last.obs, moment.last.info])
        for _ in range(8):
            action = twin.action_space.sample()
            expected = step(twin, action)
            over = expected[2] or expected[3]
            assert_equal(step(target, action), expected)
            if target is not env:
                assert_equal(step(env, action), expected)
            if over:
                break
        if over:
            play_alike(env, twin, seed + trip + 1, gap)


def _wander(env: AnyEnv, twin: AnyEnv, steps: int, seed: int) -> None:
    env.reset(seed=seed)
    for _ in range(steps):
        if any(env.step(twin.action_space.sample())[2:4]):
            return
