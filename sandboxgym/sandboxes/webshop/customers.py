"""Who is sent into the shop: the goals of a split, and what is told about an episode."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, get_args

from sandboxgym.core.errors import InvalidOptionsError
from sandboxgym.sandboxes.webshop import goals as shop_goals
from sandboxgym.sandboxes.webshop.catalogue import GoalKind
from sandboxgym.sandboxes.webshop.goals import Goal, Split
from sandboxgym.sandboxes.webshop.nouns import Nouns
from sandboxgym.sandboxes.webshop.session import Session, admissible_actions
from sandboxgym.sandboxes.webshop.shop import Shop


class Customers:
    """The customers of an environment, one for each goal.

    Args:
        shop: Where they go.
        split: "train", "eval", "test" or "all".
        kind: "synthetic" or "human".
        seed: Decides the order of goals.
        nouns: Finds the nouns of titles, for the reward.

    Raises:
        ValueError: An argument has no such value, or the split has no goals.
    """

    def __init__(self, shop: Shop, split: Split, kind: GoalKind, seed: int, nouns: Nouns) -> None:
        check_among("goals", kind, get_args(GoalKind))
        self.split = split
        self._shop = shop
        self._nouns = nouns
        self._goals = shop.goals(kind, seed)
        self._part = shop_goals.part(split, len(self._goals))
        self._last: tuple[int, Goal] | None = None  # forks of an episode have the same one
        if not self._part:
            raise ValueError(f"the catalogue has no {kind} goals in the split {split!r}")

    def __len__(self) -> int:
        """How many goals the split has."""
        return len(self._part)

    def session(self, goal: int) -> Session:
        """A customer with the goal of that index, on the first page."""
        if self._last is None or self._last[0] != goal:
            self._last = goal, self._goals[self._part[goal]]
        return Session(self._shop, self._last[1], self._goals.prices, self._nouns)

    def chosen(self, options: dict[str, Any]) -> int | None:
        """The goal that the options of a reset choose, or None where they leave it open.

        Raises:
            InvalidOptionsError: There is no such option, or no such goal.
        """
        unknown = set(options) - {"goal"}
        if unknown:
            raise InvalidOptionsError(f"there is no option {min(unknown)!r}: only 'goal'")
        goal = options.get("goal")
        if goal is None:
            return None
        if not isinstance(goal, int) or not 0 <= goal < len(self):
            raise InvalidOptionsError(
                f"goal={goal!r} is no index of a goal in the split {self.split!r}: 0 to "
                f"{len(self) - 1}"
            )
        return int(goal)


def told(session: Session, goal: int, valid: bool) -> dict[str, Any]:
    """What an environment's info says about an episode.

    Args:
        session: The customer.
        goal: The index of its goal.
        valid: Whether the last action did something.
    """
    info: dict[str, Any] = {
        "instruction": session.goal.instruction,
        "goal": goal,
        "valid": valid,
        "won": session.reward is not None and session.reward.total == 1.0,
    }
    if session.reward is not None:
        info["reward_parts"] = asdict(session.reward)
    return info


def told_of_page(session: Session) -> dict[str, Any]:
    """What it says about the page, for those who act by the texts on it."""
    return {
        "clickables": list(session.page.clickables()),
        "has_search_bar": session.page.has_search_box,
        "admissible_commands": admissible_actions(session),
    }


def check_among(name: str, value: str, allowed: tuple[str, ...]) -> None:
    """Refuse an argument that is none of the allowed values.

    Raises:
        ValueError: It is not.
    """
    if value not in allowed:
        raise ValueError(f"{name}={value!r}: choose among {', '.join(allowed)}")
