"""What one worker after the other is in charge of."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field

from sandboxgym.pool.backend import Link
from sandboxgym.pool.lanes import Lane, Order
from sandboxgym.pool.messages import Introduction


@dataclass(eq=False)
class Post:
    """What one worker after the other is in charge of: some lanes.

    Attributes:
        number: Its number in the pool.
        makers: What makes its lanes' environments, pickled.
        lanes: The lanes.
        link: The connection to the present worker; None where there is none yet.
        greeted: Whether that has built its environments.
        introductions: What the worker said of them.
        hot: Keys of the snapshots that the worker holds.
        given: Orders that it is at work on, by number, in the order in which they were given.
        careful: Orders that are given one by one.
        heard: When there was the last sign of life from it.
        limit: How long it may be without one, while it is at work; None for any time.
        failed: How many workers in a row ended before they had built the environments.
        failure: Why there is no worker, where there is none.
        forgotten: Keys of snapshots that the worker need not hold any more.
    """

    number: int
    makers: bytes
    lanes: list[Lane]
    link: Link | None = None
    greeted: bool = False
    introductions: list[Introduction] = field(default_factory=list)
    hot: set[int] = field(default_factory=set)
    given: dict[int, Order] = field(default_factory=dict)
    careful: deque[Order] = field(default_factory=deque)
    heard: float = 0.0
    limit: float | None = None
    failed: int = 0
    failure: Exception | None = None
    forgotten: set[int] = field(default_factory=set)

    @property
    def at_work(self) -> bool:
        """Whether there is something to be heard from it."""
        return self.link is not None and (bool(self.given) or not self.greeted)

    @property
    def deadline(self) -> float:
        """Until when there has to be the next sign of life."""
        return math.inf if self.limit is None else self.heard + self.limit

    def allow(self) -> None:
        """Set the limit: the longest that any one of the orders given may take."""
        if any(order.lane is None for order in self.given.values()):
            limits = [lane.limit for lane in self.lanes]
        else:
            limits = [order.limit for order in self.given.values()]
        self.limit = (
            None if None in limits else max((limit or 0.0 for limit in limits), default=0.0)
        )
