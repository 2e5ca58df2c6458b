"""How long the operations take, at a moderate depth of an episode."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

import sandboxgym
from sandboxgym.conformance.policies import random_policy

AnyEnv = gym.Env[Any, Any]

SAMPLES = 25
DEPTH = 20


def latencies(env: AnyEnv, plain: AnyEnv, depth: int) -> dict[str, float]:
    """Medians in milliseconds: a step of the plain environment, and what the forkable one does."""
    depth = min(depth, DEPTH)
    plain_step = _walk(plain, depth)
    step = _walk(env, depth)
    moment = sandboxgym.snapshot(env)
    return {
        "plain_step": plain_step,
        "step": step,
        "snapshot": _median(lambda: sandboxgym.snapshot(env)),
        "restore": _median(lambda: sandboxgym.restore(env, moment)),
        "fork": _median(lambda: sandboxgym.fork(env, 1)[0].close(), SAMPLES // 5),
    }


def _walk(env: AnyEnv, depth: int) -> float:
    """Go to a depth; the median of the steps on the way, in milliseconds."""
    rng = np.random.default_rng(0)
    env.action_space.seed(0)
    taken: list[float] = []
    last: Any = None
    at = 0
    while at < depth or len(taken) < SAMPLES:
        if last is None or last[2] or last[3] or at >= depth:
            obs, info = env.reset(seed=0)
            last, at = (obs, 0.0, False, False, info), 0
        action = random_policy(last[0], last[4], env.action_space, rng)
        start = time.perf_counter()
        last = env.step(action)
        taken.append(time.perf_counter() - start)
        at += 1
        if last[2] or last[3]:
            depth = max(1, min(depth, at - 1))
    return round(statistics.median(taken) * 1e3, 4)


def _median(operation: Callable[[], Any], samples: int = SAMPLES) -> float:
    taken = []
    for _ in range(samples):
        start = time.perf_counter()
        operation()
        taken.append(time.perf_counter() - start)
    return round(statistics.median(taken) * 1e3, 4)
