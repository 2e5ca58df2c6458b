"""One Chromium for all environments of this process: finding it, starting it, ending it.

It is spoken to over a pipe, so that it ends when its owner does, even when that is killed.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import fcntl
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sandboxgym.sandboxes.browser import profiles
from sandboxgym.sandboxes.browser.cdp import CDPSession, Connection
from sandboxgym.sandboxes.browser.contexts import Pool
from sandboxgym.sandboxes.browser.errors import (
    BrowserLostError,
    BrowserNotFoundError,
)

FLAGS = (
    "--headless",
    "--remote-debugging-pipe",
    "--no-startup-window",
    "--no-first-run",
    # Nothing is to leave this machine, whatever a page finds: names resolve to nothing.
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--disable-extensions",
    "--disable-default-apps",
    "--disable-breakpad",
    "--disable-client-side-phishing-detection",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    # Frames are drawn when we ask for them, at the time we say.
    "--enable-begin-frame-control",
    "--run-all-compositor-stages-before-draw",
    "--disable-new-content-rendering-timeout",
    "--disable-threaded-animation",
    "--disable-threaded-scrolling",
    "--disable-checker-imaging",
    "--disable-image-animation-resync",
    # The same pixels on every machine.
    "--disable-gpu",
    "--disable-lcd-text",
    "--font-render-hinting=none",
    "--force-color-profile=srgb",
    "--force-device-scale-factor=1",
    "--hide-scrollbars",
    "--mute-audio",
    "--disable-dev-shm-usage",
    # One process for all frames of a page: there is but one origin.
    "--disable-site-isolation-trials",
    "--disable-features="
    + ",".join(
        (
            "IsolateSandboxedIframes",
            "BackForwardCache",  # a document that comes back is loaded anew, so it can be recorded
            "Prerender2",
            "PaintHolding",
            # It holds loading back after an input until a frame was shown; we draw none while
            # something is loading.
            "DeferRendererTasksAfterInput",
            # What a document is shown in is made anew for each document, and a process is kept
            # ready beside; both together double what going to a page costs.
            "RenderDocument",
            "SpareRendererForSitePerProcess",
            "Translate",
            "OptimizationHints",
            "MediaRouter",
        )
    ),
)
INSTALL = (
    "install one with `apt-get install -y --no-install-recommends chromium-headless-shell "
    "fonts-liberation` (Debian, Ubuntu) or `pip install playwright && playwright install "
    "chromium-headless-shell`, or name yours in $SANDBOXGYM_CHROMIUM"
)
_NAMES = ("chromium-headless-shell", "headless_shell", "chrome-headless-shell")
_WITHIN_PLAYWRIGHT = "chromium_headless_shell-*/chrome-*/*headless[-_]shell"
_FIRST_FREE_DESCRIPTOR = 10  # above those that the browser is to have

AttachHandler = Callable[[CDPSession, dict[str, Any]], None]


def find() -> Path:
    """The browser's executable: $SANDBOXGYM_CHROMIUM, the system's, or one that Playwright has.

    Raises:
        BrowserNotFoundError: There is none.
    """
    named = os.environ.get("SANDBOXGYM_CHROMIUM")
    if named:
        if not os.access(named, os.X_OK):
            raise BrowserNotFoundError(f"$SANDBOXGYM_CHROMIUM is {named}, which is no program")
        return Path(named)
    for name in _NAMES:
        found = shutil.which(name)
        if found:
            return Path(found)
    shelf = os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or Path.home() / ".cache/ms-playwright"
    downloaded = sorted(Path(shelf).glob(_WITHIN_PLAYWRIGHT))
    if downloaded:
        return downloaded[-1]
    raise BrowserNotFoundError(f"no Chromium headless shell was found: {INSTALL}")


class Browser:
    """A running Chromium.

    Attributes:
        pid: Of its process, which leads a group of its own.
        connection: The pipe to it.
        cdp: The session of the browser itself.
        pool: Its blank contexts.
        user_agent: What pages are told that it is.
    """

    def __init__(
        self, pid: int, profile: profiles.Profile, descriptors: tuple[int, int], link: Connection
    ) -> None:
        self.pid = pid
        self.connection = link
        self.cdp = link.browser
        self.pool = Pool(self)
        self.user_agent = ""
        self._profile = profile
        self._descriptors = descriptors
        self._contexts: dict[str, AttachHandler] = {}
        self.cdp.on("Target.attachedToTarget", self._attached)

    @classmethod
    async def launch(cls) -> Browser:
        """Start one.

        Raises:
            BrowserNotFoundError: There is none on this machine.
            BrowserLostError: It ended at once; the message has its last words.
        """
        program = find()
        profile = profiles.make()
        pid, reading, writing = _spawn(program, profile)
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=1 << 30)
        await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reading, "rb", 0)
        )
        writer, _ = await loop.connect_write_pipe(asyncio.Protocol, os.fdopen(writing, "wb", 0))
        browser = cls(pid, profile, (reading, writing), Connection(reader, writer))
        try:
            version = await browser.cdp.send("Browser.getVersion")
            browser.user_agent = version["userAgent"].replace("Headless", "")
            await browser.cdp.send(
                "Target.setAutoAttach", autoAttach=True, waitForDebuggerOnStart=True, flatten=True
            )
        except BrowserLostError:
            words = profile.last_words()
            await browser.close()
            raise BrowserLostError(f"{program} ended at once: {words}") from None
        return browser

    @property
    def lost(self) -> bool:
        """Whether it is gone."""
        return self.connection.lost

    def forget(self) -> None:
        """Be lost to this process, which was forked off the one that it belongs to."""
        self.connection.lost = True
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in self._descriptors:  # not closed, for there are objects that will be
            os.dup2(nothing, descriptor, inheritable=False)
        os.close(nothing)

    async def new_context(self, attached: AttachHandler) -> str:
        """Make a context: cookies, storage and pages apart from all others.

        Args:
            attached: Called with each new page of it, which waits until it is told to run.

        Returns:
            Its id.
        """
        context = await self.cdp.send("Target.createBrowserContext", disposeOnDetach=True)
        context_id: str = context["browserContextId"]
        await self.cdp.send(
            "Browser.setDownloadBehavior",
            behavior="deny",
            browserContextId=context_id,
            eventsEnabled=True,
        )
        self.attach(context_id, attached)
        return context_id

    def attach(self, context_id: str, attached: AttachHandler) -> None:
        """Say who is called with each new page of a context from now on."""
        self._contexts[context_id] = attached

    async def new_page(self, context_id: str) -> str:
        """Open an empty page in a context; the id of its target."""
        created = await self.cdp.send(
            "Target.createTarget",
            url="about:blank",
            browserContextId=context_id,
            enableBeginFrameControl=True,
        )
        target_id: str = created["targetId"]
        return target_id

    async def dispose_context(self, context_id: str) -> None:
        """End a context and all its pages. Whatever the browser is asked next comes after that."""
        del self._contexts[context_id]
        self.cdp.post("Target.disposeBrowserContext", browserContextId=context_id)

    async def close(self) -> None:
        """End the browser and remove its profile."""
        self.connection.close()
        await asyncio.get_running_loop().run_in_executor(None, self.end)

    def end(self) -> None:
        """End its processes, which need not be asked, and remove its profile."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        self._profile.remove()

    def _attached(self, params: dict[str, Any]) -> None:
        target = params["targetInfo"]
        session = self.connection.session(params["sessionId"], target["targetId"])
        attached = self._contexts.get(target.get("browserContextId", ""))
        if attached is not None:
            attached(session, target)


def _spawn(program: Path, profile: profiles.Profile) -> tuple[int, int, int]:
    """Start the browser in a process group of its own; its id and our ends of the pipes."""
    command = [str(program), *FLAGS, f"--user-data-dir={profile.folder}"]
    if os.geteuid() == 0:
        command.append("--no-sandbox")  # Chromium's own sandbox does not start as root
    its_reading, writing = _pipe()
    reading, its_writing = _pipe()
    silence = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    words = os.open(profile.words, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    given = ((silence, 0), (silence, 1), (words, 2), (its_reading, 3), (its_writing, 4))
    try:
        pid = os.posix_spawn(
            program,
            command,
            dict(os.environ),
            file_actions=[(os.POSIX_SPAWN_DUP2, ours, its) for ours, its in given],
            setsid=True,
        )
    finally:
        for descriptor in (its_reading, its_writing, silence, words):
            os.close(descriptor)
    return pid, reading, writing


def _pipe() -> tuple[int, int]:
    reading, writing = os.pipe()
    moved = []
    for end in (reading, writing):
        moved.append(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE_DESCRIPTOR))
        os.close(end)
    return moved[0], moved[1]


_browser: Browser | None = None
_launching = asyncio.Lock()
_minding = False


async def shared() -> Browser:
    """The browser of this process; started at the first call, and again after it was lost."""
    global _browser
    async with _launching:
        if _browser is not None and _browser.lost:
            await _browser.close()
            _browser = None
        if _browser is None:
            _mind_the_end()
            _browser = await Browser.launch()
        return _browser


async def close() -> None:
    """End the browser of this process, if there is one."""
    global _browser
    async with _launching:
        if _browser is not None:
            await _browser.close()
            _browser = None


def _mind_the_end() -> None:
    """End the browser with the interpreter, and leave it to this process where it forks."""
    global _minding
    if not _minding:
        _minding = True
        atexit.register(_end)
        os.register_at_fork(after_in_child=_forked)


def _end() -> None:
    if _browser is not None:
        _browser.end()


def _forked() -> None:
    global _browser, _launching
    if _browser is not None:
        _browser.forget()
    _browser, _launching = None, asyncio.Lock()
