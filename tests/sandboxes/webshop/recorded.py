"""The browser face in the place of the original: its products, its goals, the prices it drew."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from sandboxgym.sandboxes.webshop.browser_env import WebShopBrowserEnv
from sandboxgym.sandboxes.webshop.customers import Customers
from sandboxgym.sandboxes.webshop.goals import Goal
from sandboxgym.sandboxes.webshop.nouns import GivenNouns, Nouns
from sandboxgym.sandboxes.webshop.session import Session
from sandboxgym.sandboxes.webshop.site import ShopSite


def read(path: Path) -> list[Any]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


class DrawnPrices:
    """The prices that the original drew in an episode."""

    def __init__(self, prices: dict[str, float]) -> None:
        self.prices = prices

    def price(self, product: Any) -> float:
        return self.prices[product.asin]


def goal_of(recorded: dict[str, Any]) -> Goal:
    return Goal(
        asin=recorded["asin"],
        title=recorded["name"],
        query=recorded["query"],
        category=recorded["product_category"],
        instruction=recorded["instruction_text"],
        attributes=tuple(recorded["attributes"]),
        options=recorded["goal_options"],
        price_limit=recorded["price_upper"],
    )


class RecordedCustomers(Customers):
    """Those of the recorded episodes, by their numbers."""

    episodes: list[dict[str, Any]]

    def __len__(self) -> int:
        return len(self.episodes)

    def session(self, goal: int) -> Session:
        episode = self.episodes[goal]
        prices: Any = DrawnPrices(episode["prices"])
        return Session(self._shop, goal_of(episode["goal"]), prices, self._nouns)


class RecordedEnv(WebShopBrowserEnv):
    """Plays recorded episodes: `reset(options={"goal": number})`."""

    def __init__(self, folder: str) -> None:
        super().__init__("all", actions="webshop", catalogue=folder)
        [by_asin] = read(Path(folder) / "title_nouns_sm38.json.gz")
        titles = {product.asin: product.title for product in self._shop.catalogue}
        given = {titles[asin]: nouns for asin, nouns in by_asin.items()}
        nouns = Nouns(GivenNouns("recorded", given))
        customers = RecordedCustomers(self._shop, "all", "synthetic", 0, nouns)
        customers.episodes = read(Path(folder) / "episodes.jsonl.gz")
        self._customers = customers
        self._app = ShopSite(self._shop, customers.session)

    @property
    def episodes(self) -> list[dict[str, Any]]:
        assert isinstance(self._customers, RecordedCustomers)
        return self._customers.episodes
