"""`sandboxgym/WebShopBrowser-v0`: the same shop and goals as in text mode, with real pages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal, get_args

from sandboxgym.core.spaces import AnyText
from sandboxgym.sandboxes.browser.env import BrowserEnv, Turn
from sandboxgym.sandboxes.browser.observation import ActionTexts, Observation
from sandboxgym.sandboxes.browser.options import Options
from sandboxgym.sandboxes.browser.sites import Site, WSGISite
from sandboxgym.sandboxes.webshop.catalogue import GoalKind
from sandboxgym.sandboxes.webshop.customers import Customers, check_among, told, told_of_page
from sandboxgym.sandboxes.webshop.goals import DEFAULT_SEED, Split
from sandboxgym.sandboxes.webshop.nouns import NounTagger
from sandboxgym.sandboxes.webshop.opening import open_nouns, open_shop
from sandboxgym.sandboxes.webshop.session import MAX_SEARCH, Session, parsed
from sandboxgym.sandboxes.webshop.site import ShopSite
from sandboxgym.sandboxes.webshop.spaces import MAX_ACTION, check_action
from sandboxgym.sandboxes.webshop.storefront import SEARCH_ID, id_of
from sandboxgym.sandboxes.webshop.texts import joined

ORIGIN = "https://webshop.test"
Grammar = Literal["browser", "webshop"]

# The texts of a page, as they stand between its tags.
_TEXTS = """(() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) texts.push(walker.currentNode.data);
  return texts;
})()"""


class WebShopBrowserEnv(BrowserEnv):
    """WebShop in a browser: find and buy what an instruction asks for, on real pages.

    Observations are those of `sandboxgym/Browser-v0`, whose `goal` is the instruction; goals and
    rewards are those of `sandboxgym/WebShop-v0`, and the same seed draws the same goal. What a
    page says (`page_text`) is what text mode says.

    Actions are those of a browser, "click('12')" and the like, or with `actions="webshop"` those
    of text mode, "search[words]" and "click[text]": these are done by real clicks and typing, and
    what is not possible changes nothing and is told in `last_action_error`. "Buy Now" ends the
    episode with a reward from 0 to 1. `gymnasium.make` adds a limit of 100 steps.

    Each info holds `instruction`, `goal` (the index of the goal among those of the split), `valid`
    (whether the last action could be done), `won` (whether the reward is 1), and after a purchase
    `reward_parts`. With `actions="webshop"`, also `clickables`, `has_search_bar` and
    `admissible_commands`, as in text mode.

    `reset(options={"goal": i})` takes the goal at that index; else the seed draws one.

    Args:
        split: "train", "eval", "test" or "all"; see `WebShopEnv`.
        actions: "browser" or "webshop".
        goals: "synthetic" or "human".
        catalogue: The file with products of the original WebShop, or its folder; None for the
            generated catalogue of this package.
        num_products: Only the first so many; None for all of a file, or 1,000 generated ones.
        tagger: What finds the nouns in titles: "builtin", "spacy", or an object.
        goal_seed: Decides the order of goals, prices where a product has a range, and limits.
        screenshot: Whether observations have a picture.
        browser: How pages see the world, and what they may do.
        render_mode: "rgb_array", or None.

    Raises:
        DataNotFoundError: There is no such catalogue.
        GameFileError: The catalogue is not in the format.
        ValueError: An argument has no such value, or the split has no goals.
        BrowserNotFoundError: At the first `reset`, where there is no Chromium.
    """

    def __init__(
        self,
        split: Split = "train",
        *,
        actions: Grammar = "browser",
        goals: GoalKind = "synthetic",
        catalogue: str | Path | None = None,
        num_products: int | None = None,
        tagger: str | NounTagger = "builtin",
        goal_seed: int = DEFAULT_SEED,
        screenshot: bool = False,
        browser: Options | None = None,
        render_mode: str | None = None,
    ) -> None:
        check_among("actions", actions, get_args(Grammar))
        self._shop = open_shop(catalogue, num_products)
        self._nouns = open_nouns(tagger)
        self._customers = Customers(self._shop, split, goals, goal_seed, self._nouns)
        self._app = ShopSite(self._shop, self._customers.session)
        self._next_goal = 0
        super().__init__(
            lambda: WSGISite(self._app, ORIGIN),
            reward=self._earned,
            screenshot=screenshot,
            browser=browser,
            render_mode=render_mode,
        )
        self.split = split
        self.actions = actions
        self.goal_kind = goals
        self.goal_seed = goal_seed
        self.action_space = ActionTexts() if actions == "browser" else AnyText(MAX_ACTION)

    @property
    def num_goals(self) -> int:
        """How many goals the split has."""
        return len(self._customers)

    @property
    def session(self) -> Session:
        """The customer of the present episode."""
        return self._app.session

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Send a customer into the shop, with the goal in `options` or one drawn by the seed."""
        obs, _ = super().reset(seed=seed, options=options)
        return obs, self._info(valid=True)

    def step(self, action: str) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Do something; what cannot be done is told in `last_action_error`."""
        if self.actions == "browser":
            obs, earned, ended, truncated, _ = super().step(action)
            valid = not obs["last_action_error"]
            return obs, earned, ended, truncated, self._info(valid)
        check_action(action)
        deeds = self._deeds(action)
        if not deeds:
            obs = self._observe(f"{action!r:.200} is not possible on this page")
            return obs, 0.0, False, False, self._info(valid=False)
        for deed in deeds:
            obs, earned, ended, truncated, _ = super().step(deed)
            if obs["last_action_error"]:
                break
        return obs, earned, ended, truncated, self._info(valid=not obs["last_action_error"])

    def page_text(self) -> str:
        """What the page says, as in text mode."""
        return joined(self._run(self._playing.session.active.evaluate(_TEXTS)))

    def task_of(self, options: dict[str, Any]) -> tuple[str, str]:
        """The first page, and the instruction of the goal that is chosen or drawn."""
        chosen = self._customers.chosen(options)
        drawn = int(self.np_random.integers(self.num_goals)) if chosen is None else chosen
        self._next_goal = drawn
        return "/", self._customers.session(drawn).goal.instruction

    def fresh_site(self, seed: int) -> Site:
        """The shop with a new customer."""
        site = super().fresh_site(seed)
        self._app.enter(self._next_goal)
        return site

    def spec_kwargs(self) -> dict[str, Any]:
        """What decides how the environment behaves; where its files lie does not."""
        return {
            "split": self.split,
            "actions": self.actions,
            "goals": self.goal_kind,
            "catalogue": self._shop.catalogue.digest,
            "tagger": self._nouns.tagger.id,
            "goal_seed": self.goal_seed,
            "screenshot": self._screenshot,
            "browser": repr(self.browser),
        }

    def _earned(self, _turn: Turn) -> tuple[float, bool]:
        reward = self.session.reward
        return (reward.total, True) if reward else (0.0, False)

    def _info(self, valid: bool) -> dict[str, Any]:
        info = told(self.session, self._app.goal, valid)
        return info | told_of_page(self.session) if self.actions == "webshop" else info

    def _deeds(self, action: str) -> list[str]:
        """What to do in the browser for an action of text mode; nothing where it is impossible."""
        verb, argument = parsed(action) or ("", "")
        if verb == "search" and len(argument) <= MAX_SEARCH:
            box = self._bid(SEARCH_ID)
            return [f"fill({box!r}, {argument!r})", f"press({box!r}, 'Enter')"] if box else []
        link = self.session.page.link(argument) if verb == "click" else None
        bid = self._bid(id_of(link)) if link else None
        return [f"click({bid!r})"] if bid else []

    def _bid(self, element_id: str) -> str | None:
        """What a browser action calls the element with this id, or None where there is none."""
        bid: str | None = self._run(self._look_up(element_id))
        return bid

    async def _look_up(self, element_id: str) -> str | None:
        episode = self._playing
        tab = episode.session.active
        found = await tab.cdp.send(
            "Runtime.evaluate",
            expression=f"document.getElementById({json.dumps(element_id)})",
            contextId=await tab.isolated_world(),
        )
        if "objectId" not in found["result"]:
            return None
        node = await tab.cdp.send("DOM.describeNode", objectId=found["result"]["objectId"])
        return episode.bids[tab].of.get(node["node"]["backendNodeId"])
