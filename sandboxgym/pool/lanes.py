"""Lanes as the owner of a pool knows them, and what they are at work on."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from sandboxgym.core.errors import SnapshotNotFoundError
from sandboxgym.pool.handles import Parcel, SnapshotHandle
from sandboxgym.pool.messages import (
    Call,
    Command,
    Reset,
    Restore,
    SetAttribute,
    Step,
    Take,
    act,
    decode,
    first_view,
    stepped,
)
from sandboxgym.pool.recovery import Moment


@dataclass(slots=True, eq=False)
class Lane:
    """One environment of a pool, wherever it lives at present.

    Attributes:
        number: Its number in the pool.
        place: Its number in its worker.
        limit: Seconds that it may take for one thing, or None.
        moment: How it came to be where it is; None where it is in no episode.
        seen: What it has seen last, encoded; None where nothing.
        settings: Attributes that were set, as acts.
        lost: Why its environment has to be rebuilt; None where it need not.
        in_use: Whether somebody uses it.
        busy: Whether it is at work.
    """

    number: int
    place: int
    limit: float | None
    moment: Moment | None = None
    seen: bytes | None = None
    settings: list[bytes] = field(default_factory=list)
    lost: str | None = None
    in_use: bool = False
    busy: bool = False


@dataclass(slots=True, eq=False)
class Order:
    """Something that a worker was asked for.

    Attributes:
        number: Its number in the pool; answers carry it.
        lane: For which lane; None where it concerns none.
        command: What the user asked for; None where it is a need of the pool itself.
        act: The act that does it, encoded.
        key: The name of the snapshot that it takes.
        strikes: How many workers have ended over it, when they were at nothing else.
        rebuilds: Whether the lane is to be rebuilt first.
        borrows: Whether a snapshot is to be made again in the lane first.
        brings: The key of a snapshot that its worker will hold after it, or None.
        misled: Whether the snapshot that it restores was not where it should have been.
        done: Whether it is done, one way or the other.
        error: What came instead of a result.
        result: What the user gets.
    """

    number: int
    lane: Lane | None
    command: Command | None
    act: bytes
    key: int = 0
    strikes: int = 0
    rebuilds: bool = False
    borrows: bool = False
    brings: int | None = None
    misled: bool = False
    done: bool = False
    error: Exception | None = None
    result: Any = None

    @property
    def limit(self) -> float | None:
        """Seconds that it may take, the rebuilding included."""
        if self.lane is None or self.lane.limit is None:
            return None
        replayed = 0
        if isinstance(self.command, Restore):
            assert isinstance(self.command.snapshot, SnapshotHandle)
            replayed = self.command.snapshot.step
        elif self.rebuilds and self.lane.moment is not None:
            replayed = self.lane.moment.step
        return self.lane.limit * (1 + replayed)

    def bring_otherwise(self, hot: set[int]) -> bool:
        """Prepare to try once more where a snapshot was lost on its way; else False.

        Args:
            hot: Keys of the snapshots that the worker was thought to hold.
        """
        lost = isinstance(self.error, SnapshotNotFoundError)
        if not lost or self.misled or not isinstance(self.command, Restore):
            return False
        assert isinstance(self.command.snapshot, SnapshotHandle)
        if isinstance(self.command.snapshot.blob, Parcel):
            self.command.snapshot.blob = None
        hot.discard(self.command.snapshot.key)
        self.misled, self.error = True, None
        return True

    def describe(self) -> str:
        """What was asked for, for messages."""
        text = repr(self.command)
        return text if len(text) <= 200 else f"{text[:200]}..."


def act_of(command: Command, key: int) -> bytes:
    """The act that does what a command asks for; `key` names the snapshot that it may take.

    Raises:
        StateEncodingError: The command holds something that is not plain data.
    """
    match command:
        case Step(action, autoreset):
            return act("step", action, True) if autoreset else act("step", action)
        case Reset(None, options):
            return act("reset", options)
        case Reset(seed, options):
            return act("begin", int(seed), options)  # type: ignore[arg-type]  # not None
        case Take():
            return act("keep", key)
        case Restore(SnapshotHandle() as handle, seed):
            return act("restore", handle.key, None if seed is None else int(seed))
        case Call("reset" | "step" | "restore" | "close" as name):
            raise ValueError(f"call {name!r} as a method of the pool: it keeps account of that")
        case Call(name, args, kwargs):
            return act("call", name, list(args), kwargs or {})
        case SetAttribute(name, value):
            return act("set", name, value)
    raise TypeError(f"{command!r} is not a command for a lane")


def settle(order: Order, alive: bool, answer: Any, dropped: deque[int]) -> None:
    """Let a lane go on to where an order has brought it, and make of the answer what the user gets.

    Args:
        order: The order, with its error where there was one.
        alive: Whether the lane's environment is in an episode.
        answer: What the worker returned.
        dropped: Where handles that are no longer referred to leave their keys.
    """
    order.done, lane = True, order.lane
    if lane is None:
        order.result = answer
        return
    lane.busy = False
    if order.error is None or order.rebuilds:
        lane.lost = None
    if order.error is None:
        order.result = _go_on(lane, order, answer, dropped)
    elif order.borrows:
        lane.lost = lane.lost or "a snapshot could not be made again in it"
    elif lane.lost is None and not alive:
        lane.moment = lane.seen = None


def _go_on(lane: Lane, order: Order, answer: Any, dropped: deque[int]) -> Any:
    match order.command:
        case Step():
            shown, start, begun = answer
            if start is not None:  # the episode ended, and this is the next one
                lane.moment, lane.seen = Moment(act("load", start)), begun
            elif lane.moment is not None:
                lane.moment, lane.seen = lane.moment.after(order.act), shown
            return stepped(shown)
        case Reset():
            lane.seen, start = answer
            lane.moment = Moment(order.act if start is None else act("load", start))
            return first_view(answer[0])
        case Restore(SnapshotHandle() as handle, seed):
            lane.moment, lane.seen = handle.moment, handle.seen
            if seed is not None:
                lane.moment = lane.moment.after(act("reseed", int(seed)), steps=0)
            return first_view(handle.seen)
        case Take():
            assert lane.moment is not None
            return SnapshotHandle(order.key, lane.moment, answer, dropped)
        case Call():
            return decode(answer)
        case SetAttribute():
            lane.settings.append(order.act)
    return None
