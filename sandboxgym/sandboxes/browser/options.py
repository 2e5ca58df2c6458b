"""How a session's pages see the world, and what they may do."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Limits:
    """What one action may cause before its page is ended.

    Attributes:
        requests: How many requests.
        redirects: How many redirects one after the other.
        body_bytes: How large one response may be.
        tabs: How many tabs may be open.
        dialogs: How many dialogs may be shown.
        nodes: How many elements and texts the documents of a tab may have, so that they can be
            read: 10,000 take about half a second.
    """

    requests: int = 1000
    redirects: int = 15  # Chromium gives up at 20, with an error page in another process
    body_bytes: int = 64 * 2**20
    tabs: int = 12
    dialogs: int = 20
    nodes: int = 50_000


@dataclass(frozen=True)
class Options:
    """How a session's pages see the world, and what they may do.

    Attributes:
        seed: Of `Math.random` and `crypto`.
        width: Of the viewport, in pixels.
        height: Of the viewport, in pixels.
        epoch_ms: What `Date.now()` says when the session begins.
        locale: Language of pages.
        timezone: Time zone of pages.
        frame_ms: Virtual time from one drawn frame to the next.
        action_ms: Virtual time that passes with each action, at least.
        load_ms: Virtual time that a page may take to load, at most.
        wall_s: Seconds of real time that an action may take before its page counts as hung.
        limits: What one action may cause.
    """

    seed: int = 0
    width: int = 1280
    height: int = 720
    epoch_ms: float = 1_735_732_800_000.0  # 2025-01-01T12:00:00Z
    locale: str = "en-US"
    timezone: str = "UTC"
    frame_ms: float = 20.0
    action_ms: float = 100.0
    load_ms: float = 10_000.0
    wall_s: float = 10.0
    limits: Limits = field(default_factory=Limits)
