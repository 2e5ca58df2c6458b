"""The tree of moments that a player moves in: one environment, a snapshot after every step.

Every moment that was reached stays reachable: going back and taking another action starts a new
branch, and the old future is kept.
"""

from __future__ import annotations

import difflib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium as gym

from sandboxgym.core import forking
from sandboxgym.core.digest import Difference, differences, first_difference
from sandboxgym.core.errors import SandboxGymError, SnapshotError
from sandboxgym.core.snapshot import Snapshot, Transition


class PlayError(SandboxGymError):
    """What the player asked for is not possible; nothing changed."""


@dataclass(eq=False)
class Moment:
    """A node of the tree: what the environment said, and how to get back to it.

    Attributes:
        snapshot: The captured state.
        parent: The moment before, or None at a start.
        action: What led here from the parent; None at a start.
        total: Sum of the rewards from the start to here.
        origin: At a start, what started it, such as "seed 7" or the name of a file.
        name: What the player called it, or "".
        children: What was reached from here, oldest first.
    """

    snapshot: Snapshot
    parent: Moment | None = None
    action: Any = None
    total: Any = 0.0
    origin: str = ""
    name: str = ""
    children: list[Moment] = field(default_factory=list)

    @property
    def step(self) -> int:
        """Number of actions since the reset."""
        return self.snapshot.step

    @property
    def last(self) -> Transition:
        """Observation, reward, flags and info of this moment."""
        return self.snapshot.last

    @property
    def start(self) -> Moment:
        """The start that this moment goes back to."""
        return self.path()[0]

    def path(self) -> list[Moment]:
        """The moments from the start to this one."""
        path = [self]
        while path[-1].parent is not None:
            path.append(path[-1].parent)
        return path[::-1]


@dataclass(frozen=True)
class Comparison:
    """How two moments differ.

    Attributes:
        observation: The lines of a text that differ, marked "- " and "+ "; or the first
            differences by path.
        state: The first leaves of the two snapshots that differ.
    """

    observation: list[str]
    state: list[Difference]


class Timeline:
    """Plays one environment with time travel.

    Attributes:
        env: The environment; it is always at `here`, unless a restore failed for good.
        starts: The first moments of all episodes.
        here: The present moment.
        tips: The last moment of each branch, by the branch's name.
        branch: The branch that the next step continues, or None where it starts a new one.
        snapshot_seconds: How long the last snapshot took.
        restore_seconds: How long the last restore took; None before the first.
    """

    def __init__(self, env: gym.Env[Any, Any], seed: int | None = None) -> None:
        self.env = env
        self.starts: list[Moment] = []
        self.tips: dict[str, Moment] = {}
        self.branch: str | None = None
        self.snapshot_seconds = 0.0
        self.restore_seconds: float | None = None
        self.here = self.reset(seed)

    @property
    def mechanism(self) -> str:
        """How the environment's state is captured."""
        return forking.Stack.of(self.env).base.fidelity.mechanism

    def reset(self, seed: int | None = None) -> Moment:
        """Start another episode beside those that exist; its branch is a new one.

        Raises:
            PlayError: The environment failed; it was put back to where it was.
        """
        try:
            self.env.reset(seed=seed)
            snapshot = self._capture()
        except Exception as error:
            self._put_back()
            if isinstance(error, SandboxGymError):
                raise
            raise PlayError(f"the reset failed ({type(error).__name__}: {error})") from error
        return self._begin(snapshot, "no seed" if seed is None else f"seed {seed}")

    def load(self, path: str | Path) -> Moment:
        """Restore a snapshot from a file and go on from it, as a start of its own."""
        snapshot = Snapshot.load(path)
        self._restore(snapshot)
        return self._begin(snapshot, Path(path).name)

    def save(self, path: str | Path, moment: Moment | None = None) -> int:
        """Write a moment to a new file that `Snapshot.load` reads; returns the file's size.

        Raises:
            PlayError: There is a file of that name.
        """
        if Path(path).exists():
            raise PlayError(f"there is a file {path} already: give another name")
        (moment or self.here).snapshot.save(path)
        return Path(path).stat().st_size

    def step(self, action: Any) -> Moment:
        """Take an action.

        An action that was taken here before leads to the moment that it led to before. Where the
        environment fails half-way it is put back to `here`.

        Raises:
            PlayError: The environment failed, and was put back.
        """
        try:
            self.env.step(action)
            snapshot = self._capture()
        except Exception as error:
            if isinstance(error, SandboxGymError) and not isinstance(error, SnapshotError):
                raise  # a refusal, which changes nothing
            self._put_back()
            raise PlayError(
                f"the step failed ({type(error).__name__}: {error}); the environment was put back "
                f"to step {self.here.step}"
            ) from error
        moment = self._known(action, snapshot)
        if moment is None:
            total = self.here.total + snapshot.last.reward
            moment = Moment(snapshot, self.here, action, total)
            self.here.children.append(moment)
            if self.branch is None:
                self.branch = self.free_name()
            self.tips[self.branch] = moment
        elif self.branch is not None and self.tips[self.branch] is self.here:
            self.tips[self.branch] = moment
        self._arrive(moment)
        return moment

    def go(self, moment: Moment) -> None:
        """Go to any moment of the tree; where that fails, nothing changes."""
        self._restore(moment.snapshot)
        self._arrive(moment)

    def undo(self) -> None:
        """Go back one step.

        Raises:
            PlayError: This is a start.
        """
        if self.here.parent is None:
            raise PlayError("this is the start of the episode: there is nothing to undo")
        self.go(self.here.parent)

    def fork(self, moment: Moment | None = None, name: str = "") -> str:
        """Start a branch at a moment and go there; returns its name.

        Raises:
            PlayError: There is a branch of that name.
        """
        name = name.strip() or self.free_name()
        if name in self.tips:
            raise PlayError(f"there is a branch {name!r} already: give another name")
        moment = moment or self.here
        self.go(moment)
        self.tips[name] = moment
        self.branch = name
        return name

    def switch(self, branch: str) -> None:
        """Go to the last moment of a branch, to continue it."""
        if branch not in self.tips:
            raise PlayError(f"there is no branch {branch!r}")
        self.go(self.tips[branch])
        self.branch = branch

    def free_name(self) -> str:
        """A name that no branch has."""
        number = len(self.tips) + 1
        while f"branch {number}" in self.tips:
            number += 1
        return f"branch {number}" if self.tips else "main"

    def branches_at(self, moment: Moment) -> list[str]:
        """The branches whose last moment this is."""
        return [name for name, tip in self.tips.items() if tip is moment]

    def moments(self) -> Iterator[Moment]:
        """All moments, each before what follows it."""
        waiting = list(reversed(self.starts))
        while waiting:
            moment = waiting.pop()
            yield moment
            waiting.extend(reversed(moment.children))

    def compare(self, left: Moment, right: Moment) -> Comparison:
        """How two moments differ, in what one sees and in all that was captured."""
        return Comparison(
            _observation_difference(left.last.obs, right.last.obs),
            left.snapshot.diff(right.snapshot),
        )

    def _begin(self, snapshot: Snapshot, origin: str) -> Moment:
        moment = Moment(snapshot, origin=origin, total=snapshot.last.reward)
        self.starts.append(moment)
        self.branch = self.free_name()
        self.tips[self.branch] = moment
        self.here = moment
        return moment

    def _arrive(self, moment: Moment) -> None:
        self.here = moment
        branches = self.branches_at(moment)
        if self.branch not in branches:
            self.branch = branches[-1] if branches else None

    def _known(self, action: Any, snapshot: Snapshot) -> Moment | None:
        for child in self.here.children:
            same = first_difference(child.action, action) is None
            if same and child.snapshot.digest == snapshot.digest:
                return child
        return None

    def _capture(self) -> Snapshot:
        began = time.perf_counter()
        snapshot = forking.snapshot(self.env)
        self.snapshot_seconds = time.perf_counter() - began
        return snapshot

    def _restore(self, snapshot: Snapshot) -> None:
        began = time.perf_counter()
        forking.restore(self.env, snapshot)
        self.restore_seconds = time.perf_counter() - began

    def _put_back(self) -> None:
        """Return to the present moment after the environment failed half-way."""
        if self.starts:
            forking.restore(self.env, self.here.snapshot)


def _observation_difference(left: Any, right: Any) -> list[str]:
    if isinstance(left, str) and isinstance(right, str):
        lines = difflib.ndiff(left.splitlines(), right.splitlines())
        return [line for line in lines if line.startswith(("- ", "+ "))]
    return [str(difference) for difference in differences(left, right)]
