"""A moment that is told ahead of demand.

Telling a story takes as long as its actions take. But an environment that went back to one moment
twice will go back there again, as a search does, or training that begins at a snapshot. So its
story is told once more, in a context of its own, while nobody waits for the browser. The page that
it ends with stands still, as all pages do between actions. When it is wanted it is compared with
the moment, as ever, and takes the place of the page that was.
"""

from __future__ import annotations

import asyncio

from sandboxgym.sandboxes.browser import chromium
from sandboxgym.sandboxes.browser.episode import Episode
from sandboxgym.sandboxes.browser.errors import BrowserError, UncapturedPageError
from sandboxgym.sandboxes.browser.options import Options
from sandboxgym.sandboxes.browser.sites import Site
from sandboxgym.sandboxes.browser.snapshotting import (
    Moment,
    UnfaithfulTellingError,
    checked,
    told,
)


class Understudy:
    """At most one moment of one environment, told ahead. All of it runs in the browser's thread.

    Attributes:
        used: How often what was told ahead was what was wanted.
    """

    def __init__(self) -> None:
        self.used = 0
        self._part: tuple[Moment, Options] | None = None  # what was restored last
        self._telling: asyncio.Task[Episode] | None = None
        self._begun = False

    @property
    def at_work(self) -> bool:
        """Whether something is, or is being, told ahead."""
        return self._telling is not None

    async def restore(self, moment: Moment, site: Site, options: Options) -> Episode:
        """An episode at a moment.

        Raises:
            UnfaithfulTellingError: It came out differently.
        """
        again = self._part is not None and (moment, options) == self._part
        episode = await self._take() if again else None
        if episode is None:
            await self.dismiss()
            episode = await checked(await told(moment, site, options), moment)
        else:
            self.used += 1
        if again:
            self._begun = False
            self._telling = asyncio.ensure_future(self._tell(moment, site, options))
        self._part = (moment, options)
        return episode

    async def dismiss(self) -> None:
        """End what was told ahead."""
        telling, self._telling, self._part = self._telling, None, None
        if telling is None or telling.get_loop() is not asyncio.get_running_loop():
            return  # or it belongs to the process that this one was forked off
        telling.cancel()
        await asyncio.wait({telling})
        if not telling.cancelled() and telling.exception() is None:
            await telling.result().close()

    async def _tell(self, moment: Moment, site: Site, options: Options) -> Episode:
        await (await chromium.shared()).pool.quiet()
        self._begun = True
        return await told(moment, site, options)

    async def _take(self) -> Episode | None:
        """What was told ahead; None where nothing was, or where it is not what it should be."""
        telling = self._telling
        if telling is None or telling.get_loop() is not asyncio.get_running_loop():
            return None
        if not self._begun:
            return None
        self._telling = None
        part = self._part
        assert part is not None
        try:
            return await checked(await telling, part[0])
        except (BrowserError, UncapturedPageError, UnfaithfulTellingError):
            return None  # whoever asked has it told anew, and is told what goes wrong with that
