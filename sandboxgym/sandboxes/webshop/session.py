"""A customer in the shop: a goal, the page they are at, and in the end what they bought.

Both faces of the environment, text and site, move a session. All that it does is to follow the
links of pages, to search, and to judge the purchase.
"""

from __future__ import annotations

import re
from typing import Any

from sandboxgym.sandboxes.webshop import pages
from sandboxgym.sandboxes.webshop.goals import Goal
from sandboxgym.sandboxes.webshop.nouns import Nouns
from sandboxgym.sandboxes.webshop.pages import INDEX, Page, View
from sandboxgym.sandboxes.webshop.prices import PriceList
from sandboxgym.sandboxes.webshop.reward import Reward, reward
from sandboxgym.sandboxes.webshop.shop import Shop

MAX_SEARCH = 2_000  # characters
_BRACKETS = str.maketrans("[]\n", "   ")
_ACTION = re.compile(r"(.+)\[(.+)\]")


class Session:
    """One episode in a shop.

    Args:
        shop: Where it takes place.
        goal: What the customer wants.
        prices: What things cost.
        nouns: Finds the nouns of titles, for the reward.
    """

    def __init__(self, shop: Shop, goal: Goal, prices: PriceList, nouns: Nouns) -> None:
        self.goal = goal
        self.view = INDEX
        self.visited: tuple[str, ...] = ()
        self.reward: Reward | None = None
        self._shop = shop
        self._prices = prices
        self._nouns = nouns
        self._page: Page | None = None

    @property
    def done(self) -> bool:
        """Whether something was bought."""
        return self.reward is not None

    @property
    def page(self) -> Page:
        """The page that the customer sees."""
        if self._page is None:
            if self.reward is not None:
                self._page = pages.done_page(self.view, self.reward.total)
            else:
                self._page = self.look(self.view)
        return self._page

    def look(self, view: View) -> Page:
        """The page at a view, wherever the customer is."""
        return self._shop.page(view, self.goal.instruction)

    def act(self, action: str) -> bool:
        """Do what "search[words]" or "click[text]" says.

        A search is possible on every page. Only what is on the page can be clicked, and not the
        button of the search box.

        Returns:
            Whether that was possible; if not, nothing has changed.
        """
        verb, argument = parsed(action) or ("", "")
        if self.done:
            return False
        if verb == "search":
            return self.go(View("results", argument))
        target = self.page.link(argument) if verb == "click" and argument != "search" else None
        return target is not None and self.go(target)

    def go(self, view: View) -> bool:
        """Go to a view, of whatever origin; one of the page "done" buys what is looked at.

        Returns:
            Whether there is such a page; if not, nothing has changed.
        """
        if self.done or not self._exists(view):
            return False
        if view.page == "index":
            self.visited = ()
        elif view.page == "item" and view.asin not in self.visited:
            self.visited = (*self.visited, view.asin)
        elif view.page == "done":
            self.reward = self._judge(view)
        self.view, self._page = view, None
        return True

    def _exists(self, view: View) -> bool:
        """Whether the shop has the product of a view with these options."""
        if len(view.keywords) > MAX_SEARCH:
            return False
        if not view.asin:
            return not view.options
        if self._shop.catalogue.find(view.asin) is None:
            return False
        offered = self._shop.catalogue.product(view.asin).options
        return all(value in offered.get(name, ()) for name, value in view.options)

    def _judge(self, view: View) -> Reward:
        product = self._shop.catalogue.product(view.asin)
        price = self._prices.price(product)
        return reward(product, self.goal, price, dict(view.options), self._nouns)

    def get_state(self) -> dict[str, Any]:
        """Where the customer is, as plain data; the goal is not in it."""
        view = self.view
        return {
            "view": [view.page, view.keywords, view.number, view.asin],
            "options": [text for pair in view.options for text in pair],
            "visited": list(self.visited),
            "done": self.done,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Put the customer there."""
        names_and_values = iter(state["options"])
        options = tuple(zip(names_and_values, names_and_values, strict=True))
        page, keywords, number, asin = state["view"]
        self.view = View(page, keywords, number, asin, options)
        self.visited = tuple(state["visited"])
        self.reward = self._judge(self.view) if state["done"] else None
        self._page = None


def admissible_actions(session: Session) -> list[str]:
    """Actions that do something: all clicks, and where there is a search box, a search.

    The search is for the instruction, which is all that a customer knows.
    """
    if session.done:
        return []
    actions = []
    if session.page.has_search_box:
        actions.append(search_action(session))
    clicks = (click_action(text) for text in session.page.clickables() if text != "search")
    return actions + [action for action in clicks if action is not None]


def click_action(text: str) -> str | None:
    """The click on a text; None where it has brackets or line breaks and cannot be told so."""
    action = f"click[{text}]"
    return action if parsed(action) == ("click", text) else None


def search_action(session: Session) -> str:
    """The search for a customer's instruction."""
    words = session.goal.instruction.lower().translate(_BRACKETS)[:MAX_SEARCH]
    return f"search[{words}]"


def parsed(action: str) -> tuple[str, str] | None:
    """The verb and the argument, in lower case, of an action; None where it has no such form."""
    match = _ACTION.match(action)
    return None if match is None else (match[1], match[2].lower())
