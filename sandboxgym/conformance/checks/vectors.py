"""Environments side by side in Gymnasium's vector environments."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
from gymnasium import Space
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.vector.utils import concatenate, create_empty_array

from sandboxgym.conformance.check import check
from sandboxgym.conformance.lab import Lab, Script
from sandboxgym.conformance.subject import Seen, Subject
from sandboxgym.core.plain import owned

AnyVector: TypeAlias = "SyncVectorEnv | AsyncVectorEnv[Any, Any]"


@check("28-in-a-sync-vector", needs=("12",))
def in_a_sync_vector(lab: Lab) -> None:
    """Trainers hold many environments in one process, and fork one while the others wait."""
    scripts = _scripts(lab)
    with _vector(lab, SyncVectorEnv, len(scripts)) as envs:
        _play(lab, envs, scripts, "in a SyncVectorEnv")
        half = _length(scripts) // 2
        _start(lab, envs, scripts, half, "in a SyncVectorEnv, started again")
        members = [Subject(env, lab.journal, f"member {i}") for i, env in enumerate(envs.envs)]
        forks = [lab.fork(member, 2) for member in members]
        for (wanderer, _), script in zip(forks, scripts, strict=True):
            lab.doing = script
            lab.detour(wanderer, script.trace[half], 2, salt=9)
            wanderer.close()
        _go_on(lab, envs, scripts, half, "in a SyncVectorEnv, after its members were forked")
        for (_, twin), script in zip(forks, scripts, strict=True):
            lab.doing = script
            how = "a fork of a member of a SyncVectorEnv"
            lab.repeats(twin, script.actions[half:], script.trace[half + 1 :], how, after=half)


@check("29-in-an-async-vector", needs=("28",))
def in_an_async_vector(lab: Lab) -> None:
    """And in worker processes that multiprocessing starts."""
    scripts = _scripts(lab)
    with _vector(lab, AsyncVectorEnv, len(scripts), shared_memory=False, daemon=False) as envs:
        _play(lab, envs, scripts, "in an AsyncVectorEnv")


def _scripts(lab: Lab) -> list[Script]:
    """The episodes to be played side by side, at least two."""
    return lab.scripts if len(lab.scripts) > 1 else lab.scripts * 2


def _length(scripts: list[Script]) -> int:
    """How many steps all of them have."""
    return min(len(script.actions) for script in scripts)


@contextmanager
def _vector(lab: Lab, kind: type[Any], size: int, **options: Any) -> Iterator[Any]:
    """A vector of environments like the one under test, which does not reset them by itself."""
    with lab.journal.call("", f"making a {kind.__name__}"):
        envs = kind([lab.source.make] * size, autoreset_mode=AutoresetMode.DISABLED, **options)
    try:
        yield envs
    finally:
        with lab.journal.call("", f"closing a {kind.__name__}"):
            envs.close()


def _play(lab: Lab, envs: AnyVector, scripts: list[Script], how: str) -> None:
    """Play episodes in all members at once."""
    _start(lab, envs, scripts, 0, how)
    _go_on(lab, envs, scripts, 0, how)


def _start(lab: Lab, envs: AnyVector, scripts: list[Script], steps: int, how: str) -> None:
    """Reset all members and take so many steps."""
    with lab.journal.call("", "reset of a vector environment"):
        obs, _ = envs.reset(seed=[script.seed for script in scripts])
    _compare(lab, envs, scripts, 0, {"obs": obs}, how)
    _steps(lab, envs, scripts, range(steps), how)


def _go_on(lab: Lab, envs: AnyVector, scripts: list[Script], at: int, how: str) -> None:
    """Take the steps that are left."""
    _steps(lab, envs, scripts, range(at, _length(scripts)), how)


def _steps(lab: Lab, envs: AnyVector, scripts: list[Script], steps: range, how: str) -> None:
    space = envs.single_action_space
    for step in steps:
        actions = _together(space, [script.actions[step] for script in scripts])
        with lab.journal.call("", "step of a vector environment"):
            result = envs.step(actions)
        names = ("obs", "reward", "terminated", "truncated")
        _compare(lab, envs, scripts, step + 1, dict(zip(names, result, strict=False)), how)


def _compare(
    lab: Lab, envs: AnyVector, scripts: list[Script], step: int, seen: Seen, how: str
) -> None:
    """Fail unless a vector returned what its members return alone, put together by Gymnasium."""
    alone = [script.trace[step] for script in scripts]
    space = envs.single_observation_space
    expected: Seen = {"obs": _together(space, [one["obs"] for one in alone])}
    if step > 0:
        expected["reward"] = np.array([one["reward"] for one in alone], dtype=np.float64)
        for flag in ("terminated", "truncated"):
            expected[flag] = np.array([one[flag] for one in alone], dtype=np.bool_)
    lab.doing = scripts[0]
    lab.same(owned(expected), owned(seen), f"{how}, step {step}", step)


def _together(space: Space[Any], items: list[Any]) -> Any:
    """Observations or actions of several environments as those of a vector of them."""
    empty: Any = create_empty_array(space, len(items))
    return concatenate(space, items, empty)
