"""`sandboxgym/Browser-v0`: a site of yours in a real Chromium, forkable at every step.

def make_app(): ...                     # a WSGI application, new at each call
env = gym.make("sandboxgym/Browser-v0", site=make_app, goal="Buy some milk.")
obs, info = env.reset(seed=7)
obs, reward, terminated, truncated, info = env.step("click('12')")
forks = env.fork(8)
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from sandboxgym.core import codec
from sandboxgym.core.env import ForkableEnv
from sandboxgym.core.errors import (
    DataNotFoundError,
    InvalidActionError,
    InvalidOptionsError,
    SnapshotCorruptError,
)
from sandboxgym.core.plain import owned
from sandboxgym.core.snapshot import Fidelity
from sandboxgym.sandboxes.browser import loop
from sandboxgym.sandboxes.browser.actions import MAX_ACTION, ActionError, parse
from sandboxgym.sandboxes.browser.episode import Episode, Sight
from sandboxgym.sandboxes.browser.errors import BrowserError
from sandboxgym.sandboxes.browser.observation import (
    ActionTexts,
    Observation,
    cut,
    observation_space,
    pixels,
)
from sandboxgym.sandboxes.browser.options import Options
from sandboxgym.sandboxes.browser.sites import Site, site_factory
from sandboxgym.sandboxes.browser.snapshotting import (
    Moment,
    UnfaithfulTellingError,
    capture,
)
from sandboxgym.sandboxes.browser.understudy import Understudy

_PATIENCE_S = 120.0


@dataclass(frozen=True)
class Turn:
    """What a reward is made of: the moment after an action.

    Attributes:
        action: What the agent wrote.
        error: What went wrong with it, or "".
        sight: What the agent sees.
        messages: What the agent said to the user, all of it.
        infeasible: Why the agent says that the task cannot be done, or None.
        site: The site, whose state may be asked for.
    """

    action: str
    error: str
    sight: Sight
    messages: tuple[str, ...]
    infeasible: str | None
    site: Site


Reward: TypeAlias = Callable[[Turn], "float | tuple[float, bool]"]


class BrowserEnv(ForkableEnv[Observation, str]):
    """A site in a browser.

    Actions are texts of a small grammar (`actions.describe()`). Observations have `goal`, `url`,
    `title`, `axtree`, `open_pages_urls`, `open_pages_titles`, `active_page_index`, `dialogs`,
    `refused`, `chat_messages`, `last_action_error`, and `screenshot` where it was asked for.

    `reset` takes the options `start` and `goal`, instead of the constructor's.

    Args:
        site: A function that makes a WSGI or ASGI application or a `Site`; "module:function" for
            one; a folder of files; or the URL of a site elsewhere, whose snapshots replay.
        start: The path of the first page.
        goal: What the agent is to do.
        reward: Called after each step; returns the reward, or the reward and whether the episode
            is over. None: 0, and it goes on.
        screenshot: Whether observations have a picture.
        browser: How pages see the world, and what they may do. The seed in it is replaced by one
            that each `reset` draws.
        render_mode: "rgb_array", or None.

    Raises:
        DataNotFoundError: There is no such function or folder.
        TypeError: The site is none of what it can be.
        BrowserNotFoundError: At the first `reset`, where there is no Chromium.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 4}
    state_is_witness = True  # what puts a state back is a `Moment`, kept by `hold`

    def __init__(
        self,
        site: Any,
        *,
        start: str = "/",
        goal: str = "",
        reward: Reward | str | None = None,
        screenshot: bool = False,
        browser: Options | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.render_mode = render_mode
        self.browser = browser or Options()
        self.action_space = ActionTexts()
        self.observation_space = observation_space(
            screenshot=screenshot, width=self.browser.width, height=self.browser.height
        )
        self._make_site = site_factory(site)
        self._reward: Reward | None = _named(reward) if isinstance(reward, str) else reward
        self._start, self._goal, self._screenshot = start, goal, screenshot
        self._site: Site | None = None
        self._site_at_first: Any = None
        self._episode: Episode | None = None
        self._understudy = Understudy()
        self._moment: Moment | None = None  # the present one, if it was captured already
        self._seed = 0
        self._task = (start, goal)
        self._messages: tuple[str, ...] = ()

    # The life of an episode.

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Open the site's first page in a browser that knows nothing yet."""
        super().reset(seed=seed)
        task = self.task_of(options or {})
        drawn = int(self.np_random.integers(2**31))
        site = self.fresh_site(drawn)
        episode, error = self._run(Episode.begin(site, self._options(drawn), task[0]))
        self._replace(episode)
        self._seed, self._task, self._messages = drawn, task, ()
        return self._observe(error), {}

    def step(self, action: str) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Do something. What is no action, or cannot be done, is told in `last_action_error`."""
        if not isinstance(action, str) or len(action) > MAX_ACTION:
            raise InvalidActionError(
                f"an action is a text of at most {MAX_ACTION} characters, as \"click('12')\"; "
                f"got {action!r:.200}"
            )
        infeasible: str | None = None
        try:
            parsed = parse(action)
        except ActionError as failure:
            error = str(failure)
        else:
            if parsed.name == "send_msg_to_user":
                error, self._messages = "", (*self._messages, parsed["text"])
            elif parsed.name == "report_infeasible":
                error, infeasible = "", parsed["reason"]
            else:
                error = self._run(self._playing.act(parsed, action))
        self._moment = None
        obs = self._observe(error)
        turn = Turn(
            action, error, self._playing.sight(), self._messages, infeasible, self._served_site
        )
        reward, ended = self._judge(turn)
        return obs, reward, ended or infeasible is not None, False, {}

    def close(self) -> None:
        """End the pages and the site.

        The browser goes on for other environments, and ends with the process.
        """
        self._replace(None)
        if self._understudy.at_work:
            self._run(self._understudy.dismiss())
        site, self._site, self._site_at_first = self._site, None, None
        end = getattr(site, "close", None)
        if end is not None:
            end()

    def render(self) -> Any:
        """The viewport as an array, where `render_mode` says so."""
        return pixels(self.screenshot()) if self.render_mode == "rgb_array" else None

    def screenshot(self) -> bytes:
        """The viewport as PNG. Nothing in the page can notice."""
        png: bytes = self._run(self._playing.session.screenshot())
        return png

    @property
    def url(self) -> str:
        """Of the active tab."""
        return self._playing.session.active.url

    # What a kind of task may do otherwise.

    def task_of(self, options: dict[str, Any]) -> tuple[str, str]:
        """The first path and the goal of an episode, from the options of `reset`.

        Raises:
            InvalidOptionsError: There are other options, or they are no texts.
        """
        unknown = sorted(set(options) - {"start", "goal"})
        if unknown:
            raise InvalidOptionsError(f"reset takes the options start and goal; got {unknown}")
        task = options.get("start", self._start), options.get("goal", self._goal)
        if not all(isinstance(text, str) for text in task):
            raise InvalidOptionsError(f"start and goal are texts; got {task!r:.200}")
        return task

    def fresh_site(self, seed: int) -> Site:
        """The site as it is at the beginning of an episode; `seed` was drawn for it."""
        if self._site is None or self._site_at_first is None:
            self._site = self._make_site()
            self._site_at_first = owned(self._site.get_state(), "state of the site")
        else:
            self._site.set_state(owned(self._site_at_first))
        return self._site

    # What is captured, and how it is put back.

    @property
    def fidelity(self) -> Fidelity:
        """Exact, where the site's state can be captured; else its snapshots replay."""
        site = self._served_site
        capturable = self._can_tell(site)
        return Fidelity(
            scope=frozenset({"memory", "server", "dom"}),
            mechanism="native" if capturable else "replay",
            portable=True,
            exact=not getattr(site, "external", False),
            cost="constant" if capturable else "linear in depth",
            threads=True,
        )

    def get_state(self) -> dict[str, Any]:
        """What tells this moment from others; see `snapshotting.Moment`."""
        return {
            "seed": self._seed,
            "task": list(self._task),
            "messages": list(self._messages),
            "moment": self._present().witness(),
        }

    def hold(self) -> Any:
        """The moment, unless only the site itself can bring it back."""
        if not self._can_tell(self._served_site):
            return None
        return Held(self._present(), self._seed, self._task, self._messages)

    def unpack(self, packed: bytes) -> Any:
        """What `hold` returned, from bytes."""
        return Held.unpack(packed)

    def resume(self, held: Any) -> bool:
        """Tell the story of a moment again; where it comes out differently, nothing is changed."""
        site = self._served_site
        try:
            options = self._options(held.seed)
            episode = self._run(self._understudy.restore(held.moment, site, options))
        except UnfaithfulTellingError as error:
            self.metrics["unfaithful_restores"] = self.metrics.get("unfaithful_restores", 0) + 1
            self.unfaithful = str(error)
            return False
        site.set_state(owned(held.moment.site))  # it may go on with what it is given
        self._replace(episode)
        self._moment = held.moment
        self._seed, self._task, self._messages = held.seed, held.task, held.messages
        return True

    def _present(self) -> Moment:
        if self._moment is None:
            state = owned(self._served_site.get_state(), "state of the site")
            self._moment = self._run(capture(self._playing, state))
        return self._moment

    # Details.

    @property
    def _playing(self) -> Episode:
        assert self._episode is not None  # steps and snapshots come after a reset
        return self._episode

    @property
    def _served_site(self) -> Site:
        if self._site is None:
            self.fresh_site(0)
        assert self._site is not None
        return self._site

    def _can_tell(self, site: Site) -> bool:
        return self._site_at_first is not None and not getattr(site, "external", False)

    def _options(self, seed: int) -> Options:
        return replace(self.browser, seed=seed)

    def _run(self, coroutine: Any) -> Any:
        try:
            return loop.run(coroutine, _PATIENCE_S)
        except (BrowserError, TimeoutError):
            self._record = None  # nobody knows what became of the episode
            raise

    def _replace(self, episode: Episode | None) -> None:
        before, self._episode, self._moment = self._episode, episode, None
        if before is not None:
            self._run(before.close())

    def _observe(self, error: str) -> Observation:
        sight = self._playing.sight()
        self.metrics["refused_downloads"] = sight.downloads
        obs: Observation = {
            "goal": self._task[1],
            "url": sight.url,
            "title": sight.title,
            "axtree": sight.axtree,
            "open_pages_urls": cut(sight.urls),
            "open_pages_titles": cut(sight.titles),
            "active_page_index": np.int64(sight.active),
            "dialogs": cut(sight.dialogs),
            "refused": cut(sight.refused),
            "chat_messages": self._messages,
            "last_action_error": error,
        }
        if self._screenshot:
            obs["screenshot"] = pixels(self.screenshot())
        return obs

    def _judge(self, turn: Turn) -> tuple[float, bool]:
        judged = 0.0 if self._reward is None else self._reward(turn)
        reward, ended = judged if isinstance(judged, tuple) else (judged, False)
        return float(reward), bool(ended)


@dataclass(frozen=True)
class Held:
    """A moment with what the environment itself keeps."""

    moment: Moment
    seed: int
    task: tuple[str, str]
    messages: tuple[str, ...]

    def pack(self) -> bytes:
        """All of it as bytes."""
        own = [self.seed, list(self.task), list(self.messages)]
        return codec.encode([self.moment.to_data(), *own])

    @classmethod
    def unpack(cls, packed: bytes) -> Held:
        """From what `pack` returned.

        Raises:
            SnapshotCorruptError: It is something else.
        """
        try:
            moment, seed, (start, goal), messages = codec.decode(packed)
            return cls(Moment.from_data(moment), int(seed), (start, goal), tuple(messages))
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise SnapshotCorruptError(f"this is no moment of a browser ({error!r})") from error


def _named(name: str) -> Any:
    module, _, attribute = name.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise DataNotFoundError(f"there is no function {name!r} for rewards") from error
