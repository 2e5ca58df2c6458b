"""Rules that look right and are not, kept so that their bias can be shown."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.enumerable_mdp import Chance, Sampler
from sandboxgym_learners.advantages import nested_loo
from sandboxgym_learners.branching import post_hoc_top
from sandboxgym_learners.tree import Group, Segment, Step


def flat_weights(tree: Group) -> None:
    """Every decision counts the same, so that what many forks explore counts many times."""
    nested_loo(tree)
    for step in tree.steps():
        step.weight = 1 / tree.planned


def own_baseline(tree: Group) -> None:
    """The mean of the whole group as baseline, the judged member included."""
    nested_loo(tree)
    for group in tree.groups():
        for member in group.members:
            for step in member.steps:
                step.advantage *= (len(group.members) - 1) / len(group.members)


def standardised(tree: Group) -> None:
    """Advantages divided by the standard deviation of their group's returns."""
    nested_loo(tree)
    for group in tree.groups():
        values = [member.mean_return() for member in group.members]
        centre = sum(values) / len(values)
        deviation = (sum((v - centre) ** 2 for v in values) / len(values)) ** 0.5
        for member in group.members:
            for step in member.steps:
                step.advantage /= deviation + 1e-6


def branch_steps_only(tree: Group) -> None:
    """Credit on what lies below a branch point alone; the way there learns nothing."""
    nested_loo(tree)
    for root in tree.members:
        for step in root.steps:
            step.advantage = 0.0


@dataclass(frozen=True, slots=True)
class PostHocSampler:
    """Finish the backbones first, then fork each where its entropy turned out highest."""

    inner: Sampler
    max_branches: int = 1

    def __call__(self, chance: Chance) -> Group:
        """Draw one tree."""
        roots = []
        for _ in range(self.inner.backbones):
            steps = self.inner.roll(chance, 0, 0, None).steps
            cuts = post_hoc_top([s.entropy for s in steps], max_branches=self.max_branches)
            roots.append(self._graft(chance, steps, cuts))
        return Group(roots, self.inner.backbones)

    def _graft(self, chance: Chance, steps: list[Step], cuts: list[int]) -> Segment:
        """Hang forks on a finished backbone; its own rest becomes the first sibling."""
        if not cuts:
            return Segment(steps)
        before = [step for step in steps if step.depth < cuts[0]]
        after = steps[len(before) :]
        own = self._graft(chance, after, cuts[1:])
        state = int(after[0].prompt)
        forks = [
            self.inner.roll(chance, state, cuts[0], None) for _ in range(self.inner.siblings - 1)
        ]
        return Segment(before, Group([own, *forks], self.inner.siblings))
