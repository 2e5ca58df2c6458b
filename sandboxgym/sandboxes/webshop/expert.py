"""A customer who knows what to buy: the actions from any page to buying the goal's product.

They are what a policy can imitate before it learns by itself. The shop is looked at, never changed.
"""

from __future__ import annotations

from sandboxgym.sandboxes.webshop.pages import SUB_PAGES, Page, View
from sandboxgym.sandboxes.webshop.session import Session, click_action, parsed, search_action


def plan(session: Session) -> list[str]:
    """The actions that buy the goal's product, with the options that the goal names, from here.

    Where a search for the instruction does not find that product, they buy the first that it does
    find. An option whose text cannot be told in an action is left as it is.

    Returns:
        Admissible actions, the last of them "click[buy now]"; none where something is bought
        already, or nothing can be.
    """
    if session.done:
        return []
    walk = _Walk(session)
    if not walk.to_product() and not walk.by_search():
        return []
    walk.choose()
    walk.click("buy now")
    return walk.actions


class _Walk:
    """A walk through the shop that the customer of a session could take.

    Attributes:
        actions: What they would do.
    """

    def __init__(self, session: Session) -> None:
        self.actions: list[str] = []
        self._session = session
        self._view = session.view

    @property
    def _page(self) -> Page:
        return self._session.look(self._view)

    def click(self, text: str) -> bool:
        """Click on a text in lower case; whether that is possible."""
        action, target = click_action(text), self._page.link(text)
        if action is None or target is None:
            return False
        self.actions.append(action)
        self._view = target
        return True

    def to_product(self) -> bool:
        """From the page of the goal's product, or one below it, to the former; whether it is."""
        if self._view.asin != self._session.goal.asin:
            return False
        return self._view.page not in SUB_PAGES or self.click("< prev")

    def by_search(self) -> bool:
        """To a product among the results of the search that is offered; False if it finds none."""
        search = search_action(self._session)
        words = (parsed(search) or ("", ""))[1]
        found = self._listed(View("results", words))
        if found is None:
            return False
        if self._view.page != "results" or self._view.keywords != words:
            if not self._page.has_search_box:
                self.click("back to search")
            self.actions.append(search)
            self._view = View("results", words)
        number, asin = found
        while self._view.number != number:
            self.click("next >" if self._view.number < number else "< prev")
        return self.click(asin.lower())

    def _listed(self, results: View) -> tuple[int, str] | None:
        """On which page of the results the goal's product is; else the first product of all."""
        first = None
        while products := self._products(results):
            if self._session.goal.asin in products:
                return results.number, self._session.goal.asin
            first = first or (results.number, products[0])
            results = results.results(results.number + 1)
        return first

    def _products(self, results: View) -> list[str]:
        page = self._session.look(results)
        return [element.text for element in page.elements if element.kind == "asin"]

    def choose(self) -> None:
        """Choose what the goal names and the product offers."""
        wanted = self._session.goal.options
        for value in wanted.values() if isinstance(wanted, dict) else wanted:
            if value not in dict(self._view.options).values():
                self.click(value)
