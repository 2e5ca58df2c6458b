"""`BranchQueue`: branches of many trees that wait for a free lane."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from sandboxgym.core.errors import BranchQueueFullError
from sandboxgym.core.snapshot import Snapshot
from sandboxgym.pool.handles import SnapshotHandle
from sandboxgym.pool.messages import Command, Restore
from sandboxgym.pool.pool import ForkPool


@dataclass(frozen=True)
class Branch:
    """Something to be begun at a snapshot.

    Attributes:
        tree: The tree that it belongs to.
        snapshot: Where it begins.
        seed: New randomness, or None.
        note: Whatever its owner needs to know it by.
    """

    tree: Hashable
    snapshot: SnapshotHandle | Snapshot
    seed: int | None = None
    note: Any = None


@dataclass(frozen=True)
class Begun:
    """A branch that has a lane now.

    Attributes:
        branch: The branch.
        lane: Its lane.
        obs: The observation at its snapshot.
        info: The info at its snapshot.
    """

    branch: Branch
    lane: int
    obs: Any
    info: dict[str, Any]


class BranchQueue:
    """Gives the free lanes of a pool to branches that wait, fairly between trees.

    The tree with the fewest lanes at work comes first, and among equals the one that has waited
    longest; within a tree, the branch that was added first. So a wide tree does not hold up the
    others, and whoever is alone has all lanes. A branch gets a lane of the worker that holds its
    snapshot, where one is free there.

    >>> import sandboxgym as sg
    >>> from sandboxgym.pool import BranchQueue
    >>> with sg.ForkPool("CartPole-v1", 3, workers=1) as pool:
    ...     queue = BranchQueue(pool, bound=8)
    ...     root = pool.take()
    ...     obs, info = pool.reset(root, seed=0)
    ...     moment = pool.snapshot(root)
    ...     queue.finish(root)
    ...     for seed in range(5):
    ...         queue.add("a tree", moment, seed=seed)
    ...     while begun := queue.begin():
    ...         for one in begun:  # play them here, all at once
    ...             queue.finish(one.lane)
    >>> queue.waiting
    0

    Args:
        pool: The pool. What it runs besides has to leave some lanes free.
        bound: How many branches may wait at once.
    """

    def __init__(self, pool: ForkPool, *, bound: int = 1024) -> None:
        if bound < 1:
            raise ValueError(f"a queue holds one branch or more; got bound={bound}")
        self.pool = pool
        self.bound = bound
        self._waiting: dict[Hashable, deque[Branch]] = {}  # trees in the order of their last turn
        self._at_work: dict[int, Hashable] = {}

    @property
    def waiting(self) -> int:
        """How many branches wait for a lane."""
        return sum(map(len, self._waiting.values()))

    @property
    def room(self) -> int:
        """How many more branches can be added now."""
        return self.bound - self.waiting

    def add(
        self,
        tree: Hashable,
        snapshot: SnapshotHandle | Snapshot,
        *,
        seed: int | None = None,
        note: Any = None,
    ) -> None:
        """Let a branch wait for a lane.

        Raises:
            BranchQueueFullError: `bound` branches wait already: begin and finish some first.
        """
        if self.room < 1:
            raise BranchQueueFullError(
                f"{self.waiting} branches wait for a lane, and no more may: call begin(), play "
                "what it returns, and finish() those lanes; `room` says how many can be added"
            )
        self._waiting.setdefault(tree, deque()).append(Branch(tree, snapshot, seed, note))

    def count(self, lane: int, tree: Hashable) -> None:
        """Count a lane as one of a tree, though it was not begun here: its root, say."""
        self._at_work[lane] = tree

    def begin(self) -> list[Begun]:
        """Give free lanes to branches that wait, and bring the lanes to their snapshots.

        Raises:
            Exception: A snapshot could not be restored. Its branch is given up; the others of this
                turn wait again.
        """
        chosen: dict[int, Branch] = {}
        free = len(self.pool.free)
        while self._waiting and len(chosen) < free:
            branch = self._next()
            near = branch.snapshot if isinstance(branch.snapshot, SnapshotHandle) else None
            lane = self.pool.take(near)
            chosen[lane] = branch
            self._at_work[lane] = branch.tree
        commands: dict[int, Command] = {
            lane: Restore(branch.snapshot, branch.seed) for lane, branch in chosen.items()
        }
        results = self.pool.do(commands, on_error="return")
        errors = [result for result in results.values() if isinstance(result, Exception)]
        if errors:
            self._take_back(chosen, results)
            raise errors[0]
        return [Begun(branch, lane, *results[lane]) for lane, branch in chosen.items()]

    def finish(self, lane: int) -> None:
        """Give a lane back, for the next branch."""
        self.pool.release(lane)
        self._at_work.pop(lane, None)

    def _next(self) -> Branch:
        """The branch whose turn it is."""
        lanes = Counter(self._at_work.values())
        tree = min(self._waiting, key=lambda name: lanes[name])  # the first of those with fewest
        branches = self._waiting.pop(tree)
        branch = branches.popleft()
        if branches:
            self._waiting[tree] = branches  # at the end: its turn was now
        return branch

    def _take_back(self, chosen: dict[int, Branch], results: dict[int, Any]) -> None:
        for lane, branch in reversed(chosen.items()):
            self.finish(lane)
            if not isinstance(results[lane], Exception):
                self._waiting.setdefault(branch.tree, deque()).appendleft(branch)
