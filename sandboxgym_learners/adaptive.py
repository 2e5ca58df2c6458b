"""How many roots, how many siblings, or no branching at all: chosen anew for every update.

Every shape that could be collected for the cost of the configured one has a predicted variance
times cost. The least is taken, if it promises clearly less than the present shape does. Where
no branching promises least, trees are independent episodes (RLOO), with an update that branches
now and then, to see whether it has begun to pay.

The choice depends on earlier updates alone, so the gradient stays unbiased. A second branch point
on a backbone is never chosen: it lowers the noise of one member of its group in K, for nearly the
cost of another group.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from sandboxgym_learners.algorithms import Shape
from sandboxgym_learners.anova import Components
from sandboxgym_learners.config import AdaptiveConfig
from sandboxgym_learners.efficiency import cost, variance

SIBLINGS = (2, 3, 4, 6, 8, 12, 16, 24, 32)

LEAST_ROOTS = 1.8
"""What the cost must allow for two roots, which a tree has at least."""


class AdaptiveShape:
    """The shape of the next update.

    Attributes:
        usual: The configured shape. It is what the first updates have and what probes have, and its
            cost is what every other shape may cost.
        chosen: The shape that is thought best now.
    """

    def __init__(self, config: AdaptiveConfig, usual: Shape) -> None:
        self.config = config
        self.usual = usual
        self.chosen = usual
        self._seen = 0
        self._flat = 0

    @property
    def shape(self) -> Shape:
        """What the next update collects from a task."""
        return self.usual if self._flat >= self.config.probe_every else self.chosen

    def end_update(self, known: Components | None) -> None:
        """Choose for the next update.

        Args:
            known: The running components, that of the update that ended included; None if nothing
                is known yet.
        """
        if self.shape.branches:
            self._seen += known is not None
            self._flat = 0
        else:
            self._flat += 1
        if known is None or known.eta is None or self._seen < self.config.first_updates:
            return  # too little is known, or nothing varies: no reason for another shape
        shapes = self._candidates(known)
        prices = {siblings: _price(known, shape) for siblings, shape in shapes.items()}
        best = min(prices, key=lambda siblings: prices[siblings])
        present = self.chosen.siblings if self.chosen.branches else 1
        if present in prices and prices[best] >= (1 - self.config.margin) * prices[present]:
            best = present
        self.chosen = shapes[best]

    def _candidates(self, known: Components) -> dict[int, Shape]:
        """For each number of siblings, 1 for no branching, the shape that costs what is usual."""
        budget = cost(known, self.usual)
        shapes = {1: Shape(max(2, round(budget / cost(known, Shape(1)))))}
        for siblings in {*SIBLINGS, self.usual.siblings}:
            roots = budget / cost(known, Shape(1, siblings, 1))
            if siblings <= self.config.max_siblings and roots >= LEAST_ROOTS:
                shapes[siblings] = Shape(min(round(roots), self.config.max_roots), siblings, 1)
        return shapes

    def state_dict(self) -> dict[str, Any]:
        """All that changes from update to update, as plain data for a checkpoint."""
        return {"chosen": asdict(self.chosen), "seen": self._seen, "flat": self._flat}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint that `state_dict` wrote."""
        self.chosen = Shape(**state["chosen"])
        self._seen, self._flat = state["seen"], state["flat"]


def _price(known: Components, shape: Shape) -> float:
    return variance(known, shape) * cost(known, shape)
