"""Chromium's DevTools protocol over a pipe: one connection, and a session for each target.

Playwright would give us pages, but not what makes a page a sandbox. It resumes a popup or a worker
before we could intercept its first request, it knows nothing of a worker's `Fetch` domain, and its
clicks wait for animation frames, which never come while virtual time stands still. So we speak the
protocol ourselves. All of this runs in the one thread of `loop.py`.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import msgspec

from sandboxgym.core.characters import whole
from sandboxgym.sandboxes.browser.errors import BrowserLostError, ProtocolError, TargetGoneError

Handler = Callable[[dict[str, Any]], None]

_TARGET_GONE = frozenset({-32001})  # "Session with given id not found."


class CDPSession:
    """Commands to one target, and its events.

    Attributes:
        target_id: Which target; "" for the browser itself.
        closed: Whether the target is gone, so that every command raises `TargetGoneError`.
        crashed: Whether its process is gone; commands raise the same, for none would be answered.
    """

    def __init__(self, connection: Connection, session_id: str, target_id: str) -> None:
        self.connection = connection
        self.session_id = session_id
        self.target_id = target_id
        self.closed = False
        self.crashed = False
        self._handlers: dict[str, list[Handler]] = {}

    async def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Send one command and return its result.

        Raises:
            ProtocolError: Chromium refused the command.
            TargetGoneError: The target is gone, or goes before it answers.
            BrowserLostError: The browser is gone.
        """
        return await self.post(method, **params)

    def post(self, method: str, **params: Any) -> asyncio.Future[dict[str, Any]]:
        """Send one command now; the result can be awaited later, or never."""
        return self.connection.post(self, method, params)

    def on(self, event: str, handler: Handler) -> Callable[[], None]:
        """Call `handler` with the parameters of each such event; returns what ends that.

        Beside Chromium's own events there is "detached": the target is gone.
        """
        handlers = self._handlers.setdefault(event, [])
        handlers.append(handler)
        return lambda: handlers.remove(handler)

    def dispatch(self, event: str, params: dict[str, Any]) -> None:
        """Give one event to its handlers."""
        for handler in list(self._handlers.get(event, ())):
            handler(params)


class Connection:
    """The pipe to one browser. NUL ends each message; `sessionId` says whose it is.

    Args:
        reader: What the browser writes.
        writer: What the browser reads.

    Attributes:
        browser: The session of the browser itself.
        lost: Whether the browser is gone.
        drawing: The frame that was asked for last, of whichever page.
        last_used: When the last command was written, in the loop's time.
        epoch_s: Seconds from 1970 to the zero of its monotonic clock, as it reckons them.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.WriteTransport) -> None:
        self._reader = reader
        self._writer = writer
        self._last_id = 0
        self._waiting: dict[int, tuple[CDPSession, str, asyncio.Future[dict[str, Any]]]] = {}
        self._sessions: dict[str, CDPSession] = {}
        self._encode = msgspec.json.Encoder().encode
        self._decode = msgspec.json.Decoder(dict[str, Any]).decode
        self.browser = CDPSession(self, "", "")
        self.lost = False
        self.drawing: asyncio.Future[dict[str, Any]] | None = None
        self.last_used = 0.0
        self.epoch_s = time.time() - time.monotonic()  # once, as Chromium does
        self.reading = asyncio.ensure_future(self._read())

    def session(self, session_id: str, target_id: str) -> CDPSession:
        """The session that Chromium announced in `Target.attachedToTarget`."""
        if session_id not in self._sessions:
            self._sessions[session_id] = CDPSession(self, session_id, target_id)
        return self._sessions[session_id]

    def post(
        self, session: CDPSession, method: str, params: dict[str, Any]
    ) -> asyncio.Future[dict[str, Any]]:
        """Write one command; the future has its result."""
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        future.add_done_callback(_retrieved)
        if self.lost:
            future.set_exception(BrowserLostError(f"the browser is gone; {method} was not sent"))
            return future
        if session.closed or session.crashed:
            future.set_exception(TargetGoneError(f"the page is gone; {method} was not sent"))
            return future
        self.last_used = asyncio.get_running_loop().time()
        self._last_id += 1
        message: dict[str, Any] = {"id": self._last_id, "method": method, "params": params}
        if session.session_id:
            message["sessionId"] = session.session_id
        self._waiting[self._last_id] = (session, method, future)
        self._writer.write(self._encode(message) + b"\0")
        return future

    def close(self) -> None:
        """Let go of the pipe, which ends the browser."""
        self._writer.close()
        self.reading.cancel()
        self._lose()

    async def _read(self) -> None:
        try:
            while True:
                line = await self._reader.readuntil(b"\0")
                self._receive(self._read_message(line[:-1]))
        except (asyncio.IncompleteReadError, ConnectionError):
            self._lose()

    def _read_message(self, line: bytes) -> dict[str, Any]:
        try:
            return self._decode(line)
        except msgspec.DecodeError:  # pages may have halves of characters, which no text can hold
            halves = json.dumps(json.loads(line), ensure_ascii=False)
            return self._decode(whole(halves).encode())

    def _receive(self, message: dict[str, Any]) -> None:
        if "id" in message:
            self._answer(message)
            return
        session_id = message.get("sessionId", "")
        session = self._sessions.get(session_id) if session_id else self.browser
        method, params = message["method"], message.get("params", {})
        if method == "Target.detachedFromTarget":
            self._detach(params["sessionId"])
        if session is not None:
            if method == "Inspector.targetCrashed":
                session.crashed = True
                self._give_up(session)
            session.dispatch(method, params)

    def _answer(self, message: dict[str, Any]) -> None:
        waiting = self._waiting.pop(message["id"], None)
        if waiting is None or waiting[2].done():
            return
        _, method, future = waiting
        error = message.get("error")
        if error is None:
            future.set_result(message["result"])
        elif error.get("code") in _TARGET_GONE:
            future.set_exception(TargetGoneError(f"{method}: {error['message']}"))
        else:
            future.set_exception(ProtocolError(method, error.get("message", ""), error.get("data")))

    def _detach(self, session_id: str) -> None:
        session = self._sessions.pop(session_id, None)
        if session is None:
            return
        session.closed = True
        session.dispatch("detached", {})
        self._give_up(session)

    def _give_up(self, session: CDPSession) -> None:
        """Wait no more for what a target was to answer."""
        for number, (owner, method, future) in list(self._waiting.items()):
            if owner is session:
                del self._waiting[number]
                if not future.done():
                    future.set_exception(TargetGoneError(f"the page went during {method}"))

    def _lose(self) -> None:
        if self.lost:
            return
        self.lost = True
        waiting, self._waiting = self._waiting, {}
        for _, method, future in waiting.values():
            if not future.done():
                future.set_exception(BrowserLostError(f"the browser went during {method}"))
        for session in self._sessions.values():
            session.closed = True
            session.dispatch("detached", {})
        self.browser.dispatch("lost", {})


def _retrieved(future: asyncio.Future[dict[str, Any]]) -> None:
    """Count the error of a command whose result nobody waits for as seen: its cause is reported."""
    if not future.cancelled():
        future.exception()
