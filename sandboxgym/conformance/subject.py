"""An environment under test, and what it shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from gymnasium.wrappers import RecordEpisodeStatistics

from sandboxgym.conformance.source import AnyEnv
from sandboxgym.core import forking
from sandboxgym.core.plain import owned
from sandboxgym.core.snapshot import Snapshot

Seen: TypeAlias = dict[str, Any]
"""What a reset, step or restore returned, by name: obs, info and after a step reward and flags."""

STEP_RESULT = ("obs", "reward", "terminated", "truncated", "info")


class Subject:
    """An environment under test; everything it returns is copied at once."""

    def __init__(self, env: AnyEnv) -> None:
        self.env = env
        self.closed = False
        self._timed = [
            layer._stats_key
            for layer in forking.Stack.of(env).layers
            if isinstance(layer, RecordEpisodeStatistics)
        ]

    def reset(self, seed: int | None = None) -> Seen:
        """Start an episode."""
        return self.seen(self.env.reset(seed=seed))

    def step(self, action: Any) -> Seen:
        """Take an action."""
        return self.seen(self.env.step(owned(action, "action")))

    def play(self, actions: Sequence[Any]) -> list[Seen]:
        """Take several actions."""
        return [self.step(action) for action in actions]

    def snapshot(self) -> Snapshot:
        """Capture this moment."""
        return forking.snapshot(self.env)

    def restore(
        self, snapshot: Snapshot, seed: int | None = None, verify: bool | None = None
    ) -> Seen:
        """Return to a moment."""
        return self.seen(forking.restore(self.env, snapshot, seed=seed, verify=verify))

    def digest(self) -> str:
        """The canonical hash of the present state."""
        return forking.state_digest(self.env)

    def close(self) -> None:
        """Close the environment, once."""
        if not self.closed:
            self.closed = True
            self.env.close()

    def seen(self, result: Sequence[Any]) -> Seen:
        """What a reset, a restore (two values) or a step (five) returned, copied and by name."""
        names = ("obs", "info") if len(result) == 2 else STEP_RESULT
        seen = {name: owned(value, name) for name, value in zip(names, result, strict=True)}
        for key in self._timed:
            if key in seen["info"]:
                del seen["info"][key]["t"]  # seconds on the clock, the one thing that may vary
        return seen


def ended(seen: Seen) -> bool:
    """Whether an episode is over; a reset has no flags and starts one."""
    return bool(seen.get("terminated") or seen.get("truncated"))
