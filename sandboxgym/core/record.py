"""The record of the present episode, from which a snapshot takes its recipe."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sandboxgym.core.snapshot import Recipe, Snapshot, Transition


@dataclass(slots=True)
class Record:
    """What happened in the present episode: the recipe under construction and the last result."""

    seed: int | None
    options: dict[str, Any] | None
    rng: dict[str, Any] | None
    last: Transition
    actions: list[Any] = field(default_factory=list)
    reseeds: tuple[tuple[int, int], ...] = ()
    parent: str | None = None

    def recipe(self) -> Recipe:
        """The recipe up to now."""
        return Recipe(self.seed, self.options, self.rng, tuple(self.actions), self.reseeds)

    @classmethod
    def of(cls, snapshot: Snapshot) -> Record:
        """The record that an environment restored from `snapshot` continues."""
        recipe = snapshot.recipe
        return cls(
            seed=recipe.seed,
            options=recipe.options,
            rng=recipe.rng,
            last=snapshot.inner,
            actions=list(recipe.actions),
            reseeds=recipe.reseeds,
            parent=snapshot.digest,
        )
