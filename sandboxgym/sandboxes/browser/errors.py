"""What can go wrong with a browser, a page or a site."""

from __future__ import annotations

from sandboxgym.core.errors import MissingDependencyError, SandboxGymError, UncapturedStateError


class BrowserError(SandboxGymError):
    """Base class of what can go wrong with the browser."""


class BrowserNotFoundError(BrowserError, MissingDependencyError):
    """There is no Chromium on this machine; the message has the command that installs one."""


class BrowserLostError(BrowserError, RuntimeError):
    """The browser is gone: its episodes are over, and `reset` starts another."""


class ProtocolError(BrowserError, RuntimeError):
    """Chromium refused a command.

    Attributes:
        method: The command.
        reason: Why, in Chromium's words.
    """

    def __init__(self, method: str, reason: str, data: str | None = None) -> None:
        self.method = method
        self.reason = reason
        super().__init__(f"{method}: {reason}" + (f" ({data})" if data else ""))


class TargetGoneError(BrowserError, RuntimeError):
    """The tab, frame or worker that was spoken to is gone."""


class PageCrashedError(BrowserError, RuntimeError):
    """The process that showed a page crashed; the tab is shown anew at its next navigation."""


class PageHungError(BrowserError, TimeoutError):
    """A page did not come to rest within its time limit."""


class ClockLostError(PageCrashedError):
    """A page went to another process of the browser, where time is not ours."""


class NavigationRefusedError(BrowserError, ValueError):
    """A tab was not sent to a URL; the message says why. It shows what it showed."""


class PageLimitError(BrowserError, RuntimeError):
    """A page went beyond a limit: of requests, redirects, bytes, tabs, dialogs or nodes."""


class SiteError(BrowserError, RuntimeError):
    """The site's own code raised instead of answering a request."""


class UncapturedPageError(UncapturedStateError):
    """A page holds something that no snapshot captures; the message names it."""
