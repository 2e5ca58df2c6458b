"""`sandboxgym/MiniWoB-v0`: the tasks of MiniWoB++, forkable at every step.

env = gym.make("sandboxgym/MiniWoB-v0", task="click-test")
obs, info = env.reset(seed=7)
obs["utterance"], obs["fields"], obs["axtree"]
obs, reward, terminated, truncated, info = env.step("click('4')")
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from gymnasium import spaces

from sandboxgym.core.errors import InvalidOptionsError
from sandboxgym.core.snapshot import Fidelity
from sandboxgym.core.spaces import AnyText
from sandboxgym.sandboxes.browser.env import BrowserEnv, Turn
from sandboxgym.sandboxes.browser.errors import ProtocolError, TargetGoneError
from sandboxgym.sandboxes.browser.miniwob import tasks
from sandboxgym.sandboxes.browser.miniwob.site import MiniWoBSite
from sandboxgym.sandboxes.browser.observation import Observation, observation_space
from sandboxgym.sandboxes.browser.options import Options
from sandboxgym.sandboxes.browser.session import Session
from sandboxgym.sandboxes.browser.sites import Site

_MAX_UTTERANCE = 100_000
_MODES = ("train", "test")

# In the page's own world, where MiniWoB++ keeps these. What is called changes nothing.
_STANDING = """typeof core === "undefined" || core.ept0 === null ? null : {
  done: WOB_DONE_GLOBAL,
  reward: WOB_REWARD_GLOBAL,
  raw_reward: WOB_RAW_REWARD_GLOBAL,
  reason: WOB_REWARD_REASON == null ? "" : String(WOB_REWARD_REASON),
  said: core.getUtterance(),
}"""


@dataclass(frozen=True)
class Standing:
    """How an episode stands, as its page says.

    Attributes:
        done: Whether it is over.
        reward: What it was worth, less for the time it took; 0 until it is over.
        raw_reward: What it was worth without regard to time.
        reason: Why, where the page says that.
        utterance: What is to be done.
        fields: What the utterance asks for, where the page says that.
    """

    done: bool
    reward: float
    raw_reward: float
    reason: str
    utterance: str
    fields: tasks.Fields

    @classmethod
    def read(cls, found: dict[str, Any] | None) -> Standing:
        """From what `_STANDING` evaluates to."""
        if found is None:
            return _LEFT
        said = found["said"]
        fields = said["fields"] if isinstance(said, dict) else {}
        return cls(
            found["done"],
            float(found["reward"]),
            float(found["raw_reward"]),
            found["reason"],
            said["utterance"] if isinstance(said, dict) else said,
            tuple((str(key), str(value)) for key, value in fields.items()),
        )


_LEFT = Standing(True, -1.0, -1.0, "the task's page was left", "", ())


class MiniWoBEnv(BrowserEnv):
    """A task of MiniWoB++ in a browser.

    Actions are those of `BrowserEnv`. Observations are its, with `goal` and `utterance` (what the
    page says is to be done, at the beginning and now) and `fields` (pairs of key and value that
    MiniWoB++ reads from the utterance). Each info has `raw_reward` (without regard to time) and
    `reason`.

    `reset(seed=s)` gives the problem that MiniWoB++ gives for that seed: `Math.seedrandom(s)`. The
    reward is MiniWoB++'s: 0 until the episode ends, then what the page says it was worth, for most
    tasks less for the time it took. Time is virtual: each action takes `action_ms` of it. When the
    task's time is up, the episode terminates with -1, and so it does when its page is left.

    Args:
        task: The task's name; `tasks.names()` has all.
        mode: "train" or "test": which problems, for the few tasks that tell the two apart.
        action_ms: Virtual milliseconds that pass with each action.
        screenshot: Whether observations have a picture.
        render_mode: "rgb_array", or None.

    Raises:
        MissingDependencyError: MiniWoB++ is not installed.
        DataNotFoundError: There is no such task.
        ValueError: There is no such mode.
    """

    def __init__(
        self,
        task: str,
        *,
        mode: str = "train",
        action_ms: float = 100.0,
        screenshot: bool = False,
        render_mode: str | None = None,
    ) -> None:
        self.task = tasks.task(task)
        if mode not in _MODES:
            raise ValueError(f"mode={mode!r}: choose among {', '.join(_MODES)}")
        self._site_seed: int | None = None
        self.standing = _LEFT
        world = Options(width=self.task.width, height=self.task.height, action_ms=action_ms)
        super().__init__(
            lambda: MiniWoBSite(self.task, mode),
            start=self.task.page,
            screenshot=screenshot,
            browser=world,
            render_mode=render_mode,
        )
        seen = observation_space(screenshot=screenshot, width=world.width, height=world.height)
        self.observation_space = spaces.Dict(
            {
                **seen.spaces,
                "utterance": AnyText(_MAX_UTTERANCE),
                "fields": spaces.Sequence(
                    spaces.Tuple((AnyText(_MAX_UTTERANCE), AnyText(_MAX_UTTERANCE)))
                ),
            }
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode: the problem of a seed, or another one."""
        self._site_seed = seed
        obs, _ = super().reset(seed=seed, options=options)
        goal = obs["utterance"]
        self._task = (self._task[0], goal)
        return {**obs, "goal": goal, "fields": self._fields()}, self._info()

    def step(self, action: str) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Do something, for as long as the task's time is not up."""
        obs, reward, terminated, truncated, _ = super().step(action)
        return obs, reward, terminated, truncated, self._info()

    def task_of(self, options: dict[str, Any]) -> tuple[str, str]:
        """The task's page; what the goal is, only the page can say.

        Raises:
            InvalidOptionsError: There are options.
        """
        if options:
            raise InvalidOptionsError(f"reset of a MiniWoB task takes no options; got {options}")
        return self.task.page, ""

    def fresh_site(self, seed: int) -> Site:
        """The site before an episode with the seed that `reset` was given, or one drawn."""
        site = super().fresh_site(seed)
        site.set_state(
            {"seed": seed if self._site_seed is None else self._site_seed, "begun": False}
        )
        return site

    @property
    def fidelity(self) -> Fidelity:
        """That of a browser, but not exact for the tasks that `tasks.INEXACT` names."""
        declared = super().fidelity
        return replace(declared, exact=declared.exact and self.task.name not in tasks.INEXACT)

    def _observe(self, error: str) -> Observation:
        obs = super()._observe(error)
        self.standing = self._run(_standing(self._playing.session, self.task.page))
        return {**obs, "utterance": self.standing.utterance, "fields": self._fields()}

    def _fields(self) -> tasks.Fields:
        return self.standing.fields or self.task.fields(self._task[1])

    def _judge(self, turn: Turn) -> tuple[float, bool]:
        return self.standing.reward, self.standing.done

    def _info(self) -> dict[str, Any]:
        return {"raw_reward": self.standing.raw_reward, "reason": self.standing.reason}


async def _standing(session: Session, page: str) -> Standing:
    """How an episode stands, out of the first tab: the agent may be in another."""
    try:
        found = await session.tabs[0].cdp.send(
            "Runtime.evaluate", expression=_STANDING, returnByValue=True
        )
    except TargetGoneError:
        return _LEFT
    if "exceptionDetails" in found:
        thrown = found["exceptionDetails"]
        raise ProtocolError("Runtime.evaluate", f"{page}: {thrown['text']}")
    return Standing.read(found["result"]["value"])
