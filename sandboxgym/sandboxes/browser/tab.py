"""`Tab`: a page with all its frames and workers, in one session."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from sandboxgym.sandboxes.browser import determinism
from sandboxgym.sandboxes.browser.cdp import CDPSession
from sandboxgym.sandboxes.browser.errors import (
    BrowserError,
    PageCrashedError,
    PageLimitError,
    ProtocolError,
)
from sandboxgym.sandboxes.browser.intercept import Traffic
from sandboxgym.sandboxes.browser.options import Options
from sandboxgym.sandboxes.browser.scripts import script
from sandboxgym.sandboxes.browser.settle import Clock, Frames, Loading
from sandboxgym.sandboxes.browser.workers import Workers

_ASKED_FOR = frozenset({"http", "https", "about", "blob", "data", "javascript"})
_WORLD = "sandboxgym"
_PICKER_OPEN = script("picker_open.js")
_ESCAPE = {"key": "Escape", "code": "Escape", "windowsVirtualKeyCode": 27}
_AS_LEFT = "addEventListener('pagehide', () => { history.scrollRestoration = 'manual'; })"
_FOUND = "__sandboxgym_found__"  # exists in that world only


@dataclass(frozen=True)
class Dialog:
    """A dialog that a page showed, and how it was answered.

    Attributes:
        kind: alert, confirm, prompt or beforeunload.
        message: What it said.
        accepted: Whether it was accepted, which alerts and beforeunload are; no text is given.
    """

    kind: str
    message: str
    accepted: bool


class Tab:
    """A page with all its frames and workers.

    Args:
        cdp: The DevTools session of the page; commands take its frames by id.
        options: How it sees the world.
        traffic: Answers its requests.
        clock: Its virtual time.
        opener: The tab that opened it, or None.
        fail: Called with the tab and an error when it cannot go on.

    Attributes:
        frame_id: Of the main frame.
        url: Of the current document.
        dialogs: What it showed since the last action began.
        refused: What it was refused since the last action began, each with the reason.
        workers: Its workers.
        ended: Whether its session is done with it.
        pointer: Where the mouse was last over it; [] if it never was. New documents know.
        traversals: How far the page wants to go in its history; `traverse` does it.
        file_chooser: The backend node id of the `<input type=file>` whose dialog the page opened
            last, or None; dialogs are never shown, `DOM.setFileInputFiles` fills it.
    """

    def __init__(
        self,
        cdp: CDPSession,
        options: Options,
        traffic: Traffic,
        clock: Clock,
        opener: Tab | None,
        fail: Callable[[Tab, BrowserError], None],
    ) -> None:
        self.cdp = cdp
        self.options = options
        self.traffic = traffic
        self.opener = opener
        self.frame_id = cdp.target_id
        self.url = "about:blank"
        self.dialogs: list[Dialog] = []
        self.refused: list[str] = traffic.refused
        self.file_chooser: int | None = None
        self.clock = clock
        self.frames = Frames(cdp, clock, options.frame_ms)
        self.loading = Loading(cdp)
        self.workers = Workers(cdp, options.seed, self._reported, self.loading.worker_runs)
        self.traversals: list[int] = []
        self.ended = False
        self.pointer: list[float] = []
        self._fail = fail
        self._first_script = self._chance_script = ""  # by Chromium's names
        cdp.on("Page.frameNavigated", self._navigated)
        cdp.on("Page.frameRequestedNavigation", self._wants_away)
        cdp.on("Log.entryAdded", self._logged)
        cdp.on("Page.navigatedWithinDocument", self._moved)
        cdp.on("Page.javascriptDialogOpening", self._asked)
        cdp.on("Page.fileChooserOpened", self._choosing_file)
        cdp.on("Inspector.targetCrashed", self._crashed)
        cdp.on("Runtime.bindingCalled", self._reported)

    @property
    def gone(self) -> bool:
        """Whether it was closed."""
        return self.cdp.closed

    async def start(self, user_agent: str) -> None:
        """Make the page ready before anything runs in it, then let it run.

        All commands are sent before one is answered: where a popup is opening its document already,
        Chromium answers none until the page may run.
        """
        cdp = self.cdp
        scripts = self._post_first_script(None), self._post_chance_script()
        answers = [
            cdp.post("Page.enable"),
            cdp.post("Log.enable"),
            cdp.post("Page.setInterceptFileChooserDialog", enabled=True),
            cdp.post(
                "Target.setAutoAttach", autoAttach=True, waitForDebuggerOnStart=True, flatten=True
            ),
            *determinism.prepare_page(cdp, self.options, user_agent),
            self.traffic.watch(cdp, self.frame_id),
            cdp.post("Runtime.addBinding", name=_FOUND, executionContextName=_WORLD),
            self.clock.add(cdp),
            cdp.post("Runtime.runIfWaitingForDebugger"),
        ]
        await asyncio.gather(*answers)
        await self._name_scripts(*scripts)

    async def put_into_storage(self, storage: dict[str, Any] | None) -> None:
        """Say what each document is to find in its storage; None leaves that alone."""
        removed = self._post_removal(self._first_script)
        self._first_script = (await self._post_first_script(storage))["identifier"]
        await removed

    def _post_first_script(self, storage: dict[str, Any] | None) -> Awaitable[dict[str, Any]]:
        settings = {"report": _FOUND, "put": storage}
        return self.cdp.post(
            "Page.addScriptToEvaluateOnNewDocument",
            source=f"{script('document_start.js')}({json.dumps(settings)})",
            worldName=_WORLD,
        )

    def _post_chance_script(self) -> Awaitable[dict[str, Any]]:
        source = determinism.script(self.options.seed)
        return self.cdp.post("Page.addScriptToEvaluateOnNewDocument", source=source)

    def _post_removal(self, name: str) -> Awaitable[dict[str, Any]]:
        return self.cdp.post("Page.removeScriptToEvaluateOnNewDocument", identifier=name)

    async def _name_scripts(
        self, first: Awaitable[dict[str, Any]], chance: Awaitable[dict[str, Any]]
    ) -> None:
        self._first_script = (await first)["identifier"]
        self._chance_script = (await chance)["identifier"]

    def begin_action(self) -> None:
        """Forget what the last action brought."""
        self.dialogs.clear()
        self.traffic.begin_action()
        self.file_chooser = None

    def _wants_away(self, params: dict[str, Any]) -> None:
        """A page asks for what is no request, and would not be told of."""
        scheme = params["url"].partition(":")[0].lower()
        if scheme not in _ASKED_FOR:
            self.traffic.refuse(f"{params['url']} was refused: it would leave the sandbox")

    def _logged(self, params: dict[str, Any]) -> None:
        """Chromium itself refuses pages what is on this machine, and says so to its log only."""
        text = params["entry"]["text"]
        if text.startswith("Not allowed to "):
            self.traffic.refuse(text)

    async def title(self) -> str:
        """The document's title."""
        return str(await self.evaluate("document.title"))

    async def evaluate(self, expression: str, *, frame_id: str | None = None) -> Any:
        """Evaluate JavaScript in an isolated world: it sees the DOM, and no variable of the page.

        Args:
            expression: Its value must be JSON data; a promise is awaited.
            frame_id: Which frame; None for the main one.

        Raises:
            ProtocolError: It threw.
        """
        result = await self.cdp.send(
            "Runtime.evaluate",
            expression=expression,
            contextId=await self.isolated_world(frame_id),
            returnByValue=True,
            awaitPromise=True,
        )
        thrown = result.get("exceptionDetails")
        if thrown is not None:
            what = thrown.get("exception", {}).get("description") or thrown["text"]
            raise ProtocolError("Runtime.evaluate", what)
        return result["result"].get("value")

    async def isolated_world(self, frame_id: str | None = None) -> int:
        """The execution context, in one frame, that the page cannot see."""
        world = await self.cdp.send(
            "Page.createIsolatedWorld", frameId=frame_id or self.frame_id, worldName=_WORLD
        )
        context_id: int = world["executionContextId"]
        return context_id

    async def pass_through(self, urls: list[str], *, last_left: bool = True) -> None:
        """Open documents, only for the entries in the history that they leave when they are left.

        Args:
            urls: Theirs.
            last_left: Whether the last entry is to say, too, that a document has left it.

        They are empty. What runs first in a page would take more time than all else; nothing does.
        """
        if not urls:
            return
        for name in (self._first_script, self._chance_script):
            self._post_removal(name)
        for url in urls:
            await self._pass_through(url, left=last_left or url is not urls[-1])
        await self._name_scripts(self._post_first_script(None), self._post_chance_script())

    async def _pass_through(self, url: str, *, left: bool) -> None:
        begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def note(_params: dict[str, Any]) -> None:
            if not begun.done():
                begun.set_result(None)

        stop_listening = [
            self.cdp.on("Page.frameNavigated", note),
            self.cdp.on("Page.navigatedWithinDocument", note),
        ]
        try:
            # As a form's, because Chromium takes other navigations to the same URL for a reload,
            # which leaves no entry.
            await self.cdp.send("Page.navigate", url=url, transitionType="form_submit")
            await begun
            if left:  # as `document_start.js` does it: it is kept in the entry
                await self.cdp.send("Runtime.evaluate", expression=_AS_LEFT)
        finally:
            for stop in stop_listening:
                stop()

    async def traverse(self) -> None:
        """Go as far in the history as the page wanted, all its wishes together."""
        if self.traversals:
            step, self.traversals = sum(self.traversals), []
            await self.go(step)

    async def go(self, step: int) -> bool:
        """Go back or forward in the history; False where there is nothing to go to."""
        history = await self.cdp.send("Page.getNavigationHistory")
        entries, index = history["entries"], history["currentIndex"] + step
        # The empty page that each tab begins with is no place to go back to.
        first = 1 if entries[0]["url"] == "about:blank" else 0
        if step == 0 or not first <= index < len(entries):
            return False
        await self.cdp.send("Page.navigateToHistoryEntry", entryId=entries[index]["id"])
        return True

    async def mouse(self, kind: str, x: float, y: float, **params: Any) -> None:
        """`Input.dispatchMouseEvent`. What a wheel does comes with the next frames."""
        self.pointer = [x, y]
        at = self._input_time()
        done = self.cdp.post(
            "Input.dispatchMouseEvent", type=kind, x=x, y=y, timestamp=at, **params
        )
        if kind in ("mouseMoved", "mouseWheel"):
            # Chromium keeps moves and wheels for the next frame, but passes them on before any
            # other event: here the release of no button, which pages do not see.
            await self.cdp.send(
                "Input.dispatchMouseEvent",
                type="mouseReleased",
                x=x,
                y=y,
                button="none",
                buttons=params.get("buttons", 0),
                clickCount=0,
                timestamp=at,
            )
        if kind != "mouseWheel":
            await done

    async def key(self, kind: str, **params: Any) -> None:
        """`Input.dispatchKeyEvent`."""
        at = self._input_time()
        await self.cdp.send("Input.dispatchKeyEvent", type=kind, timestamp=at, **params)

    def _input_time(self) -> float:
        """When an input of this moment is said to happen, in seconds since 1970.

        Chromium would take the real time. That may be before the document began, where a page went
        on by itself and time has passed faster than it does: and Chromium ends a page that changes
        its address and its content for a click from before it began. Pages see none of these times.
        """
        virtual = self.clock.ticks(self.clock.now) / 1e3
        return self.cdp.connection.epoch_s + max(virtual, time.monotonic())

    async def close_picker(self) -> None:
        """Wait until the page has done what it was told before, and close what lies over it.

        While a list, a calendar or a colour picker of Chromium's own is open, Chromium draws the
        page no more. It takes the key that closes it for itself: the page sees nothing.
        """
        if await self.evaluate(_PICKER_OPEN):
            await self.key("rawKeyDown", **_ESCAPE)

    async def screenshot(self) -> bytes:
        """The viewport as PNG, as it was last drawn. Nothing in the page can notice."""
        return await self.frames.picture()

    def _navigated(self, params: dict[str, Any]) -> None:
        frame = params["frame"]
        if frame["url"].startswith("chrome-error:"):
            what = f"{frame.get('unreachableUrl', self.url)} could not be shown"
            self._fail(self, PageCrashedError(f"{what}: Chromium showed an error page instead"))
        if frame["id"] == self.frame_id:
            self.loading.forget_stored()
            self.url = frame["url"] + frame.get("urlFragment", "")

    def _moved(self, params: dict[str, Any]) -> None:
        if params["frameId"] == self.frame_id:
            self.url = params["url"]
            self.traffic.recorder.moved_within_document(params.get("navigationType", ""))

    def _asked(self, params: dict[str, Any]) -> None:
        accept = params["type"] in ("alert", "beforeunload")
        self.dialogs.append(Dialog(params["type"], params["message"], accept))
        limit = self.options.limits.dialogs
        if len(self.dialogs) > limit:
            self._fail(self, PageLimitError(f"{self.url} showed more than {limit} dialogs"))
        else:
            self.cdp.post("Page.handleJavaScriptDialog", accept=accept)

    def _choosing_file(self, params: dict[str, Any]) -> None:
        self.file_chooser = params.get("backendNodeId")

    def _crashed(self, _params: dict[str, Any]) -> None:
        self._fail(self, PageCrashedError(f"the process that showed {self.url} crashed"))

    def _reported(self, params: dict[str, Any]) -> None:
        if params["name"] == _FOUND:
            self.traffic.recorder.found(params["payload"])
            return
        kind, *what = json.loads(params["payload"])
        if kind == "traverse":
            self.traversals.append(what[0])
        elif kind == "asked":
            self.loading.asked_for_stored(what[0])
        elif kind == "databases":
            self.traffic.recorder.uses_databases = True
        elif kind == "keeps":
            self.traffic.recorder.keeps_more = True
        else:
            name, which = what
            self.traffic.refuse(f"{name} ({which}) was refused: it would leave the sandbox")
