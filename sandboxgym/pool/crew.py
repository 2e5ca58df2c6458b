"""The workers of a pool: giving orders, hearing answers, and replacing those that are lost.

When a worker is lost, nobody knows which of its orders was to blame. So they are given again one by
one, each to be answered before the next: an order over which a worker ends while it was at nothing
else has a strike against it, and one with too many strikes fails. All others succeed.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

import cloudpickle

from sandboxgym.core.errors import LaneHungError, LanePoisonedError, WorkerLostError
from sandboxgym.pool.backend import Backend, Link
from sandboxgym.pool.failure import rebuilt
from sandboxgym.pool.lanes import Order, settle
from sandboxgym.pool.messages import act, decode
from sandboxgym.pool.planning import acts_for
from sandboxgym.pool.posts import Post
from sandboxgym.pool.recovery import LaneRestarted
from sandboxgym.pool.signals import undisturbed

_GREETING = 0
"""The number of the order that nobody gives: to build the environments."""


class Crew:
    """All workers of a pool.

    Args:
        backend: Starts them.
        posts: What they are in charge of.
        building: Seconds that a worker may take to build its environments, or None.
        patience: With how many strikes an order is tried once more.

    Attributes:
        dropped: Handles that are no longer referred to leave their keys here.
        restarts: What became of lanes whose worker was lost.
        finished: Orders that are done, until somebody takes them from here.
    """

    def __init__(
        self, backend: Backend[Any], posts: list[Post], building: float | None, patience: int
    ) -> None:
        self.backend = backend
        self.posts = posts
        self.building = building
        self.patience = patience
        self.dropped: deque[int] = deque()
        self.restarts: deque[LaneRestarted] = deque(maxlen=10_000)
        self.finished: deque[Order] = deque()

    def greet(self) -> None:
        """Start all workers, and wait until they have built their environments.

        Raises:
            Exception: What building them raised.
            WorkerLostError: A worker ended over it.
        """
        while waited_for := [post for post in self.posts if not post.greeted]:
            for post in waited_for:
                if post.failure is not None:
                    raise post.failure
                if post.link is None:
                    self._start(post)
            self.hear(None)

    def give(self, orders: Iterable[tuple[Post, Order]]) -> None:
        """Give orders, all those for a worker in one message. Waits for nothing.

        Called where nothing interrupts (`undisturbed`).
        """
        self._forget_dropped()
        batches: dict[int, list[Order]] = {}
        for post, order in orders:
            if post.careful:
                post.careful.append(order)
            else:
                batches.setdefault(post.number, []).append(order)
        for number, batch in batches.items():
            self._send(self.posts[number], batch)

    def hear(self, timeout: float | None) -> None:
        """Wait for answers, for `timeout` seconds at most; orders that are done are `finished`."""
        at_work = {post.link: post for post in self.posts if post.at_work}
        if self.finished or not at_work:
            return
        links = self.backend.wait(at_work, self._time_left(at_work.values(), timeout))
        with undisturbed():
            for link in links:
                try:
                    self._listen(at_work[link], link)
                except WorkerLostError:
                    self._lose(at_work[link])
            now = time.monotonic()
            for post in at_work.values():
                if post.at_work and now > post.deadline:
                    self._lose(post, f"no answer came for {now - post.heard:.1f} s", hung=True)
                self._go_on(post)

    def close(self) -> None:
        """End all workers."""
        self.backend.close()

    # --- One worker ------------------------------------------------------------------------------

    def _start(self, post: Post) -> None:
        post.greeted, post.failure = False, None
        post.link = self.backend.start(post.makers)
        post.heard, post.limit = time.monotonic(), self.building

    def _send(self, post: Post, orders: Sequence[Order]) -> None:
        """Send orders to the worker of a post, with what it needs to do them."""
        if post.link is None:
            try:
                self._start(post)
            except WorkerLostError as error:
                self._fail([*orders, *post.careful], error)
                post.careful.clear()
                return
        message: list[Any] = []
        if post.forgotten:
            message.append([_GREETING, None, [act("forget", sorted(post.forgotten))]])
            post.forgotten.clear()
        if not post.given:
            post.heard = time.monotonic()  # it was idle until now
        for order in orders:
            place = None if order.lane is None else order.lane.place
            message.append([order.number, place, acts_for(order, post.hot)])
            post.given[order.number] = order
        if post.greeted:
            post.allow()
        assert post.link is not None
        try:
            post.link.send(message)
        except WorkerLostError:
            self._lose(post)
            self._go_on(post)

    def _listen(self, post: Post, link: Link) -> None:
        """Hear what a worker has to say."""
        for number, error, alive, answer in link.arrived():
            post.heard = time.monotonic()
            order = post.given.pop(number, None)
            if order is None:
                if not post.greeted:
                    self._greeted(post, error, answer)
                continue
            if error is not None:
                lane = None if order.lane is None else order.lane.number
                order.error = rebuilt(decode(error), lane)
                if order.brings is not None:
                    post.hot.discard(order.brings)
                if order.bring_otherwise(post.hot):
                    self.give([(post, order)])
                    continue
            self._settle(order, alive, answer)

    def _greeted(self, post: Post, error: bytes | None, introductions: bytes) -> None:
        """Note that a worker has built its environments, or why not."""
        if error is None:
            post.greeted, post.failed, post.failure = True, 0, None
            post.allow()
            post.introductions = cloudpickle.loads(introductions)
        else:
            self._give_up(post, rebuilt(decode(error), None))

    def _lose(self, post: Post, why: str = "", *, hung: bool = False) -> None:
        """Do without the worker of a post, and prepare its orders for the next one."""
        assert post.link is not None
        how = post.link.end()
        reason = f"{why}, so it was ended" if why else how
        post.link = None
        post.hot.clear()
        post.forgotten.clear()
        for lane in post.lanes:
            lane.lost = reason
        orders = list(post.given.values())
        post.given.clear()
        if not post.greeted:
            post.failed += 1
        elif len(orders) == 1:
            orders[0].strikes += 1
            if orders[0].strikes > self.patience:
                blamed = orders.pop()
                self._fail([blamed], _poisoned(blamed, reason, hung))
        post.careful.extendleft(reversed(orders))
        if post.failed > self.patience:
            lanes = ", ".join(str(lane.number) for lane in post.lanes)
            self._give_up(
                post,
                WorkerLostError(
                    f"the worker of lane(s) {lanes} was lost {post.failed} times while it built "
                    f"their environments ({reason}): build one in this process to see why"
                ),
            )

    def _go_on(self, post: Post) -> None:
        """Give the next of the orders that are given one by one."""
        if post.careful and not post.given:
            self._send(post, [post.careful.popleft()])

    def _give_up(self, post: Post, failure: Exception) -> None:
        """Fail all orders of a post, which cannot have a worker; later ones are tried anew."""
        if post.link is not None:
            post.link.end()
            post.link = None
        post.failed, post.failure, post.greeted = 0, failure, False
        orders = [*post.given.values(), *post.careful]
        post.given.clear()
        post.careful.clear()
        self._fail(orders, failure)

    def _fail(self, orders: Iterable[Order], error: Exception) -> None:
        for order in orders:
            order.error, order.rebuilds, order.borrows = error, False, False
            self._settle(order, True, None)

    def _settle(self, order: Order, alive: bool, answer: Any) -> None:
        """Let a lane go on, and note where it does so in a new worker."""
        lane = order.lane
        lost = None if lane is None else lane.lost
        settle(order, alive, answer, self.dropped)
        self.finished.append(order)
        if lane is not None and lost is not None and lane.lost is None and lane.moment is not None:
            self.restarts.append(LaneRestarted(lane.number, lost, lane.moment.step))

    def _forget_dropped(self) -> None:
        """Find out which worker holds what nobody refers to any more."""
        keys = set()
        while self.dropped:
            keys.add(self.dropped.popleft())
        for post in self.posts:
            gone = post.hot & keys
            post.hot -= gone
            post.forgotten |= gone

    def _time_left(self, posts: Iterable[Post], timeout: float | None) -> float | None:
        """How long to wait: until the timeout, or until the first worker is overdue."""
        left = max(0.0, min(post.deadline for post in posts) - time.monotonic())
        if timeout is not None:
            left = min(left, timeout)
        return None if math.isinf(left) else left


def _poisoned(order: Order, reason: str, hung: bool) -> WorkerLostError:
    where = "the pool" if order.lane is None else f"lane {order.lane.number}"
    kind = LaneHungError if hung else LanePoisonedError
    return kind(
        f"{where}: {order.strikes} workers were lost over the same thing, {order.describe()}, the "
        f"last one like this: {reason}. The lane is where it was before: do something else, "
        "restore or reset it, or do without it"
    )
