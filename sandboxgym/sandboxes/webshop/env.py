"""`sandboxgym/WebShop-v0`: shopping as text, without a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, get_args

from sandboxgym.core.env import ForkableEnv
from sandboxgym.core.snapshot import Fidelity
from sandboxgym.core.spaces import AnyText
from sandboxgym.sandboxes.webshop.addresses import address_of
from sandboxgym.sandboxes.webshop.catalogue import GoalKind
from sandboxgym.sandboxes.webshop.customers import Customers, check_among, told, told_of_page
from sandboxgym.sandboxes.webshop.expert import plan
from sandboxgym.sandboxes.webshop.goals import DEFAULT_SEED, Split
from sandboxgym.sandboxes.webshop.history import History
from sandboxgym.sandboxes.webshop.markup import as_html
from sandboxgym.sandboxes.webshop.nouns import NounTagger
from sandboxgym.sandboxes.webshop.opening import open_nouns, open_shop
from sandboxgym.sandboxes.webshop.session import Session
from sandboxgym.sandboxes.webshop.spaces import MAX_ACTION, MAX_OBSERVATION, check_action
from sandboxgym.sandboxes.webshop.texts import as_rich_text, as_text

ObservationMode = Literal["text", "text_rich", "html", "url"]
ORIGIN = "http://webshop.test"


class WebShopEnv(ForkableEnv[str, str]):
    """WebShop: find and buy what an instruction asks for, among many products.

    The action is "search[words]" or "click[text]", with a text of the page; anything else changes
    nothing. The observation is the page. "click[buy now]" ends the episode with a reward from 0 to
    1 for how much of the wish was met; before, rewards are 0. `gymnasium.make` adds a limit of 100
    steps.

    Each info holds `instruction`, `clickables` (what can be clicked, in lower case),
    `has_search_bar`, `admissible_commands` (actions that do something: all clicks, and on the first
    page a search for the instruction), `goal` (the index of the goal among those of the split),
    `valid` (whether the last action did something), `won` (whether the reward is 1), and after a
    purchase `reward_parts`; where asked for, `expert_plan`.

    `reset(seed=...)` draws a goal from the environment's generator, all of the split being equally
    likely. `reset(options={"goal": i})` takes the one at that index.

    Goals are shuffled by `goal_seed`, whose default gives the order of the field. Of them, "test"
    is the first 500, "eval" the next 1,000 and "train" the rest, as in the field; "all" has all.
    Where there are fewer than 3,000 goals, "test" is the first sixth and "eval" the next third.

    Args:
        split: "train", "eval", "test" or "all".
        observation_mode: "text" (all texts of the page in one line), "text_rich" (with marks for
            what can be and was clicked), "html" or "url".
        goals: "synthetic" for combinations of attributes and options, "human" for instructions
            that people wrote.
        catalogue: The file with products of the original WebShop, or its folder; None for the
            generated catalogue of this package.
        num_products: Only the first so many; None for all of a file, or 1,000 generated ones.
        tagger: What finds the nouns in titles, which decide a part of the reward: "builtin",
            "spacy" (the original's), or an object.
        num_prev_obs: How many earlier observations to put before the present one.
        num_prev_actions: How many earlier actions.
        goal_seed: Decides the order of goals, prices where a product has a range, and limits.
        expert_plan: Put into each info the actions that buy the goal's product from there; see
            `expert.plan`.
        render_mode: "ansi", or None.

    Raises:
        DataNotFoundError: There is no such catalogue.
        GameFileError: The catalogue is not in the format.
        ValueError: An argument has no such value, or the split has no goals.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 1}

    def __init__(
        self,
        split: Split = "train",
        *,
        observation_mode: ObservationMode = "text",
        goals: GoalKind = "synthetic",
        catalogue: str | Path | None = None,
        num_products: int | None = None,
        tagger: str | NounTagger = "builtin",
        num_prev_obs: int = 0,
        num_prev_actions: int = 0,
        goal_seed: int = DEFAULT_SEED,
        expert_plan: bool = False,
        render_mode: Literal["ansi"] | None = None,
    ) -> None:
        check_among("observation_mode", observation_mode, get_args(ObservationMode))
        self.split = split
        self.observation_mode = observation_mode
        self.goal_kind = goals
        self.goal_seed = goal_seed
        self.with_plan = expert_plan
        self.render_mode = render_mode
        self.observation_space = AnyText(MAX_OBSERVATION)
        self.action_space = AnyText(MAX_ACTION)
        self._shop = open_shop(catalogue, num_products)
        self._nouns = open_nouns(tagger)
        self._customers = Customers(self._shop, split, goals, goal_seed, self._nouns)
        self._history = History(num_prev_obs, num_prev_actions)
        self._goal = -1
        self._session: Session | None = None

    @property
    def num_goals(self) -> int:
        """How many goals the split has."""
        return len(self._customers)

    @property
    def session(self) -> Session:
        """The customer of the present episode."""
        assert self._session is not None, "the base class refuses to come here before a reset"
        return self._session

    @property
    def fidelity(self) -> Fidelity:
        """Exact and small; what environments share never changes, so that threads may be used."""
        return Fidelity(threads=True)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Send a customer into the shop, with the goal in `options` or one drawn by the seed."""
        super().reset(seed=seed)
        goal = self._customers.chosen(options or {})
        self._enter(int(self.np_random.integers(self.num_goals)) if goal is None else goal)
        observation = self._observation()
        self._history.start(observation)
        return observation, self._info(valid=True)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Search, click, or do nothing."""
        check_action(action)
        session = self.session
        valid = session.act(action)
        observation = self._history.step(action, self._observation())
        earned = session.reward.total if session.reward else 0.0
        return observation, earned, session.done, False, self._info(valid)

    def render(self) -> str:
        """The page as text."""
        return as_text(self.session.page)

    def get_state(self) -> dict[str, Any]:
        """The goal, where the customer is, and the observations still to be shown."""
        state = self.session.get_state()
        state["goal"] = self._goal
        state["seen"] = list(self._history.observations)
        state["taken"] = list(self._history.actions)
        return state

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from there."""
        self._enter(state["goal"])
        self.session.set_state(state)
        self._history.continue_with(state["seen"], state["taken"])

    def spec_kwargs(self) -> dict[str, Any]:
        """What decides how the environment behaves; where its files lie does not."""
        return {
            "split": self.split,
            "observation_mode": self.observation_mode,
            "goals": self.goal_kind,
            "catalogue": self._shop.catalogue.digest,
            "tagger": self._nouns.tagger.id,
            "num_prev_obs": self._history.num_obs,
            "num_prev_actions": self._history.num_actions,
            "goal_seed": self.goal_seed,
            "expert_plan": self.with_plan,
        }

    def _enter(self, goal: int) -> None:
        self._goal, self._session = goal, self._customers.session(goal)

    def _observation(self) -> str:
        session = self.session
        if self.observation_mode == "text":
            return as_text(session.page)
        if self.observation_mode == "text_rich":
            return as_rich_text(session.page, session.visited)
        if self.observation_mode == "html":
            return as_html(session.page)
        return ORIGIN + address_of(session.view)

    def _info(self, valid: bool) -> dict[str, Any]:
        info = told(self.session, self._goal, valid) | told_of_page(self.session)
        if self.with_plan:
            info["expert_plan"] = plan(self.session)
        return info
