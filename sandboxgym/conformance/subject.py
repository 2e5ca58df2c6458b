"""An environment under test, and what it shows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from gymnasium.wrappers import RecordEpisodeStatistics

from sandboxgym.conformance.journal import Journal
from sandboxgym.conformance.source import AnyEnv
from sandboxgym.core import forking
from sandboxgym.core.plain import owned
from sandboxgym.core.snapshot import Snapshot
from sandboxgym.core.stack import Stack

Seen: TypeAlias = dict[str, Any]
"""What a reset, step or restore returned, by name: obs, info and after a step reward and flags."""

STEP_RESULT = ("obs", "reward", "terminated", "truncated", "info")


class Subject:
    """An environment under test; every call is written down, and its result copied at once.

    The methods whose names begin with `raw` return what the environment returned, not copied.
    """

    def __init__(self, env: AnyEnv, journal: Journal | None = None, name: str = "") -> None:
        self.env = env
        self.closed = False
        self._journal = journal or Journal()
        self.name = name
        self._process = os.getpid()
        self._timed = [
            layer._stats_key
            for layer in Stack.of(env).layers
            if isinstance(layer, RecordEpisodeStatistics)
        ]

    def reset(self, seed: int | None = None) -> Seen:
        """Start an episode."""
        return self.seen(self.raw_reset(seed))

    def raw_reset(self, seed: int | None = None) -> Sequence[Any]:
        """Start an episode."""
        with self._call("reset", episode=[seed, []]):
            return self.env.reset(seed=seed)

    def step(self, action: Any) -> Seen:
        """Take an action."""
        return self.seen(self.raw_step(action))

    def raw_step(self, action: Any) -> Sequence[Any]:
        """Take an action."""
        action = owned(action, "action")
        with self._call("step", action=action):
            return self.env.step(action)

    def play(self, actions: Sequence[Any]) -> list[Seen]:
        """Take several actions."""
        return [self.step(action) for action in actions]

    def snapshot(self) -> Snapshot:
        """Capture this moment."""
        with self._call("snapshot"):
            return forking.snapshot(self.env)

    def restore(
        self, snapshot: Snapshot, seed: int | None = None, verify: bool | None = None
    ) -> Seen:
        """Return to a moment."""
        return self.seen(self.raw_restore(snapshot, seed, verify))

    def raw_restore(
        self, snapshot: Snapshot, seed: int | None = None, verify: bool | None = None
    ) -> Sequence[Any]:
        """Return to a moment."""
        episode = [snapshot.recipe.seed, list(snapshot.recipe.actions)]
        with self._call("restore", episode=episode):
            return forking.restore(self.env, snapshot, seed=seed, verify=verify)

    def fork(self, n: int) -> list[AnyEnv]:
        """Make other environments in the same state."""
        with self._call("fork"):
            return forking.fork(self.env, n)

    def digest(self) -> str:
        """The canonical hash of the present state."""
        with self._call("state_digest"):
            return forking.state_digest(self.env)

    def close(self) -> None:
        """Close the environment, once."""
        if not self.closed:
            self.closed = True
            with self._call("close"):
                self.env.close()

    def seen(self, result: Sequence[Any]) -> Seen:
        """What a reset, a restore (two values) or a step (five) returned, copied and by name."""
        names = ("obs", "info") if len(result) == 2 else STEP_RESULT
        seen = {name: owned(value, name) for name, value in zip(names, result, strict=True)}
        for key in self._timed:
            if key in seen["info"]:
                del seen["info"][key]["t"]  # seconds on the clock, the one thing that may vary
        return seen

    @contextmanager
    def _call(self, name: str, **arguments: Any) -> Iterator[None]:
        """Write down a call on the environment, and that it returned."""
        with self._journal.call(self.name, name, **arguments):
            yield
            if os.getpid() != self._process:
                os._exit(0)  # the environment forked: the suite must not go on in the copy, too


def ended(seen: Seen) -> bool:
    """Whether an episode is over; a reset has no flags and starts one."""
    return bool(seen.get("terminated") or seen.get("truncated"))
