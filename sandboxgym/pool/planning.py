"""What a worker has to do for an order, so that the lane is ready for it."""

from __future__ import annotations

from sandboxgym.pool.handles import Parcel, SnapshotHandle
from sandboxgym.pool.lanes import Order
from sandboxgym.pool.messages import Command, Delivery, Reset, Restore, Take, act


def acts_for(order: Order, hot: set[int]) -> list[bytes | Delivery]:
    """The acts that do an order, after those that bring about what it needs.

    Args:
        order: The order; what is to be done besides is noted in it.
        hot: Keys of the snapshots that the worker holds; those that it will hold are added.
    """
    lane, command = order.lane, order.command
    acts: list[bytes | Delivery] = []
    order.rebuilds, order.borrows, order.brings = False, False, None
    if lane is None:
        return [order.act]
    if lane.lost is not None:
        acts += lane.settings
    if isinstance(command, Restore):
        assert isinstance(command.snapshot, SnapshotHandle)
        acts += _bring(command.snapshot, order, hot)
    elif lane.lost is not None and lane.moment is not None and not _starts_anew(command):
        order.rebuilds = True
        acts.append(act("rebuild", lane.moment.path(), lane.seen))
    if isinstance(command, Take):
        order.brings = order.key
        hot.add(order.key)
    return [*acts, order.act]


def _bring(handle: SnapshotHandle, order: Order, hot: set[int]) -> list[bytes | Delivery]:
    """Acts that bring a snapshot to a worker that does not hold it."""
    if handle.key in hot:
        return []
    order.brings = handle.key
    hot.add(handle.key)
    if isinstance(handle.blob, Parcel):
        return [Delivery(handle.key, handle.blob)]
    if handle.blob is not None:
        return [act("put", handle.key, handle.blob)]
    order.borrows = True
    return [act("rebuild", handle.moment.path(), handle.seen), act("keep", handle.key)]


def _starts_anew(command: Command | None) -> bool:
    """Whether what a command does depends on nothing that was before."""
    return isinstance(command, Reset) and command.seed is not None
