"""The workers of a tab, kept in step with its page; a worker is refused workers of its own.

A worker runs in a thread of its own, for which Chromium's virtual time is a clock that stands still
and nothing more. So whatever it waits for comes only while the page rests, between two frames: then
we let it work until it has nothing left to do (`worker_time.js`).

What this leaves out: ports and broadcast channels that a worker has beside its own messages, and
animation frames of an `OffscreenCanvas`; they come when they come.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sandboxgym.sandboxes.browser import determinism, scripts
from sandboxgym.sandboxes.browser.cdp import CDPSession
from sandboxgym.sandboxes.browser.errors import TargetGoneError

_TICK = "__sandboxgym_tick__"


@dataclass
class _Worker:
    cdp: CDPSession
    starting: asyncio.Task[None]


class Workers:
    """All workers of a tab.

    Args:
        page: The session of the page.
        seed: Of their randomness.
        reported: Called with what their pages report; see `determinism.js`.
        runs: Called with the id of each when its script has run.
    """

    def __init__(
        self,
        page: CDPSession,
        seed: int,
        reported: Callable[[dict[str, Any]], None],
        runs: Callable[[str], None],
    ) -> None:
        self._connection = page.connection
        self._seed = seed
        self._reported = reported
        self._runs = runs
        self._all: list[_Worker] = []
        page.on("Target.attachedToTarget", self._attached)

    def __len__(self) -> int:
        return len(self._all)

    async def step(self) -> None:
        """Let all of them do what there is to do at this time."""
        self._all = [worker for worker in self._all if not worker.cdp.closed]
        for worker in self._all:
            with contextlib.suppress(TargetGoneError):  # it was ended meanwhile
                await worker.starting
                await worker.cdp.send(
                    "Runtime.evaluate", expression=f"{_TICK}()", awaitPromise=True
                )

    def _attached(self, params: dict[str, Any]) -> None:
        """Start a worker. Until it is, the page that made it stands still."""
        target = params["targetInfo"]
        cdp = self._connection.session(params["sessionId"], target["targetId"])
        cdp.on("Runtime.bindingCalled", self._reported)
        starting = asyncio.ensure_future(self._start(cdp, target["url"]))
        # One that was ended meanwhile has nobody who asks for its error, unless `step` still does.
        starting.add_done_callback(lambda done: done.cancelled() or done.exception())
        starting.add_done_callback(lambda _: self._runs(target["targetId"]))
        self._all.append(_Worker(cdp, starting))

    async def _start(self, cdp: CDPSession, url: str) -> None:
        await cdp.send("Runtime.enable")
        await cdp.send("Runtime.addBinding", name=determinism.REPORT)
        time = f"{scripts.script('worker_time.js')}({json.dumps({'tick': _TICK})});"
        for source in (time, determinism.script(self._seed, url)):
            await cdp.send("Runtime.evaluate", expression=source)
        await cdp.send("Runtime.runIfWaitingForDebugger")
        await cdp.send("Runtime.evaluate", expression="0")  # after its own script
