"""A moment of an episode as plain data, and an episode made again from one.

A moment is a story (`recorder.py`) and what the session looked like at its end. To restore it, the
story is told again in a new context of the browser: cookies, storage and history are put in, the
document is opened from the recorded responses, the actions since are repeated. That brings back
closures, drafts, timers and all else that nobody can read out of a page. Then the session has to
look the same, or the telling is refused.

The site is asked for nothing meanwhile; its state is put back by whoever calls.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from typing import Any

from sandboxgym.core import codec
from sandboxgym.sandboxes.browser.actions import ActionError, parse
from sandboxgym.sandboxes.browser.episode import Episode
from sandboxgym.sandboxes.browser.errors import (
    BrowserError,
    BrowserLostError,
    PageCrashedError,
    PageHungError,
    UncapturedPageError,
)
from sandboxgym.sandboxes.browser.fingerprint import difference
from sandboxgym.sandboxes.browser.options import Options
from sandboxgym.sandboxes.browser.recorder import Deed, Start, Story
from sandboxgym.sandboxes.browser.recording import Exchange, Replay
from sandboxgym.sandboxes.browser.session import Session
from sandboxgym.sandboxes.browser.sites import Request, Response, Site
from sandboxgym.sandboxes.browser.vetting import foreign, typed, vet

_EMPTY_PAGE = Response(200, (("Content-Type", "text/html"),), b"<!doctype html>")


class UnfaithfulTellingError(Exception):
    """A story told again led elsewhere; the text is the first difference."""


@dataclass(frozen=True)
class Moment:
    """One moment of an episode.

    Attributes:
        story: What brought it about.
        fingerprint: What the session looked like.
        site: The site's state.
        bids: For each tab, the ids of its elements in the order of its tree.
    """

    story: Story
    fingerprint: dict[str, Any]
    site: Any
    bids: list[list[str]]

    def to_data(self) -> dict[str, Any]:
        """The moment as plain data."""
        return {
            "start": asdict(self.story.start),
            "deeds": [asdict(deed) for deed in self.story.deeds],
            "exchanges": [exchange.to_data() for exchange in self.story.exchanges],
            "fingerprint": self.fingerprint,
            "site": self.site,
            "bids": self.bids,
        }

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Moment:
        """The moment from what `to_data` returned. Other data makes Python's own errors."""
        story = Story(
            typed(data["start"], Start),
            [Exchange.from_data(each) for each in data["exchanges"]],
            typed(data["deeds"], list[Deed]),
        )
        vet(story, typed(data["fingerprint"]["time"], float))
        bids = typed(data["bids"], list[list[str]])
        return cls(story, data["fingerprint"], data["site"], bids)

    def witness(self) -> dict[str, Any]:
        """Everything that decides the future, as plain data; responses by their hashes."""
        return {
            "start": asdict(self.story.start),
            "deeds": [asdict(deed) for deed in self.story.deeds],
            # Two resources that load at the same time may come in either order.
            "exchanges": sorted(_hash(exchange) for exchange in self.story.exchanges),
            "fingerprint": self.fingerprint,
            "site": self.site,
        }


async def capture(episode: Episode, site_state: Any) -> Moment:
    """The present moment of an episode at rest. Nothing in it can notice.

    Raises:
        UncapturedPageError: It holds something that no story brings back.
    """
    recorder = episode.session.recorder
    if recorder.broken is not None:
        raise _uncaptured(recorder.broken)
    try:
        fingerprint = await episode.fingerprint()
    except (PageHungError, PageCrashedError) as error:
        episode.broken_off(error)
        await episode.see()
        raise _uncaptured(str(error)) from error
    tabs = episode.session.tabs
    return Moment(
        story=recorder.story.copy(),
        fingerprint=fingerprint,
        site=site_state,
        bids=[episode.bids[tab].as_list(episode.nodes[tab]) for tab in tabs],
    )


def _uncaptured(broken: str) -> UncapturedPageError:
    return UncapturedPageError(
        f"this page cannot be captured since an action was broken off ({broken}): "
        "open another page first, or restore an earlier snapshot"
    )


async def told(moment: Moment, site: Site, options: Options) -> Episode:
    """An episode in a new context, after the story of a moment; still to be `checked`.

    Raises:
        UnfaithfulTellingError: It cannot be told.
    """
    session = await Session.start(site, options, now=moment.story.start.time)
    episode = Episode(session)
    async with _or_ended(episode):
        await _tell(episode, moment)
    return episode


async def checked(episode: Episode, moment: Moment) -> Episode:
    """The episode, if it is at the moment; else it is ended.

    Raises:
        UnfaithfulTellingError: It came out differently.
    """
    async with _or_ended(episode):
        await _check(episode, moment)
    return episode


@contextlib.asynccontextmanager
async def _or_ended(episode: Episode) -> AsyncIterator[None]:
    """End an episode that goes wrong."""
    try:
        yield
    except BaseException as error:
        await episode.close()
        told_wrongly = isinstance(error, BrowserError | UncapturedPageError)
        if told_wrongly and not isinstance(error, BrowserLostError):
            raise UnfaithfulTellingError(str(error)) from error
        raise


async def _tell(episode: Episode, moment: Moment) -> None:
    session, story = episode.session, moment.story
    start, deeds = story.start, story.deeds
    first_rest = deeds[0].time if deeds else moment.fingerprint["time"]
    if start.url:
        await _set_the_stage(session, start)
    replay = Replay(story.exchanges)
    session.recorder.replay = replay
    if start.url:
        await session.open(start.url, referrer=start.referrer, settle_until=first_rest)
        await session.active.put_into_storage(None)
    for deed in deeds:
        # An agent looked here. It has to be done again, since Chromium's tree depends on when it
        # was looked at: a drawing that was empty then stays out of it.
        await episode.look()
        if await episode.repeat(deed, _action(deed)) is None:
            raise UnfaithfulTellingError(f"{deed.text}: its element is not there")
    await session.advance(moment.fingerprint["time"])
    session.recorder.replay = None
    if replay.missed:
        raise UnfaithfulTellingError(f"it asks for {replay.missed[0].url}, as it did not before")


async def _set_the_stage(session: Session, start: Start) -> None:
    """Make a new session what it was when the story's first document was asked for."""
    session.recorder.replay, session.recorder.staging = _EmptyPages(), True
    tab = session.active
    stranger = foreign(start.history, session.site.origin)
    if stranger is not None:
        raise UnfaithfulTellingError(f"{stranger} is not of {session.site.origin}")
    await session.set_cookies(start.cookies)
    # The first is the empty tab itself. What is opened where it is already replaces it.
    replaced = [start.url] if start.replaces else []
    await tab.pass_through(
        [*start.history[1:], *replaced], last_left=start.left or not start.replaces
    )
    session.hands.x, session.hands.y = start.mouse
    if start.pointer:  # Chromium lets no mouse in before an empty page has loaded and was drawn
        await session.advance(session.now)
        await tab.frames.draw_next()
        await tab.mouse("mouseMoved", *start.pointer)
    if start.databases:
        await session.set_databases(start.databases)
    if start.storage:
        await tab.put_into_storage(start.storage)
    session.recorder.staging = False


class _EmptyPages:
    """Stands in for documents that are in the history and will never be seen."""

    def respond(self, request: Request) -> Response:
        return _EMPTY_PAGE


async def _check(episode: Episode, moment: Moment) -> None:
    """Give elements the ids that they had, and compare all that can be seen."""
    session = episode.session
    await episode.look()
    trees = list(episode.nodes.items())
    if len(trees) == len(moment.bids):
        for (tab, nodes), bids, seen in zip(
            trees, moment.bids, moment.fingerprint["tabs"], strict=True
        ):
            with contextlib.suppress(ValueError):  # other elements: the comparison says which
                episode.bids[tab].adopt(nodes, bids, seen["next_bid"])
    different = difference(moment.fingerprint, await episode.fingerprint())
    if different is None:
        different = difference(
            {"story": _story(moment.story)}, {"story": _story(session.recorder.story)}
        )
    if different is not None:
        raise UnfaithfulTellingError(different)


def _story(story: Story) -> dict[str, Any]:
    return {
        "start": asdict(story.start),
        "deeds": [asdict(deed) for deed in story.deeds],
        "exchanges": sorted(f"{e.request.method} {e.request.url}" for e in story.exchanges),
    }


def _action(deed: Deed) -> Any:
    try:
        return parse(deed.text)
    except ActionError as error:
        raise UnfaithfulTellingError(str(error)) from None


def _hash(exchange: Exchange) -> str:
    return hashlib.blake2b(codec.encode(exchange.to_data()), digest_size=16).hexdigest()
