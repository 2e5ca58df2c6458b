"""From credited trees to a changed policy: the surrogate loss, its gradient, Adam.

    loss = - 1/trees · Σ over decisions  weight · [min(r · A, clip(r, 1 - c, 1 + c) · A) + β · H]
           + κ · 1/trees · Σ weight · KL(π ‖ π at the start)

with r the probability of the action now over the one when it was taken; of a text, every token has
its own r, and the sum goes over them. H is the entropy of the policy now. In the first step r is 1
and the gradient, without bonus and divergence, is that of `advantages`. Decisions with advantage 0
have no such gradient and are then not computed; nothing else changes when they are left out, since
every weight is fixed beforehand.

A pass takes one step on all decisions, or several on minibatches of them, each scaled up to stand
for all. Source: PPO (Schulman et al. 2017).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from sandboxgym_learners.algorithms import Schedule
from sandboxgym_learners.config import LearningConfig
from sandboxgym_learners.divergence import DivergenceError
from sandboxgym_learners.policy import Policy, Taken, batches, minibatches
from sandboxgym_learners.tree import Group, Step


@dataclass(frozen=True)
class GradientStatistics:
    """The gradient of the first step, before clipping.

    Attributes:
        norm: Its length.
        variance: Trace of the covariance of a single tree's gradient, estimated between the trees;
            None with a single tree, or where steps are taken on minibatches.
    """

    norm: float
    variance: float | None


class _Decisions(NamedTuple):
    """Decisions that have a gradient."""

    taken: Sequence[Taken]
    weights: Tensor
    advantages: Tensor
    old: list[tuple[float, ...]]


class Learner:
    """Changes a policy by the gradient of credited trees."""

    def __init__(
        self,
        policy: Policy,
        config: LearningConfig,
        schedule: Schedule = Schedule(),  # noqa: B008 -- it cannot be changed
        *,
        reference: Policy | None = None,
        seed: int = 0,
    ) -> None:
        """Prepare to train `policy`; `reference` is what a KL term holds it close to."""
        if config.kl and reference is None:
            raise ValueError("a KL term needs a reference policy")
        self.policy = policy
        self.config = config
        self.schedule = schedule
        self.reference = reference
        self.seed = seed
        self.parameters = [p for p in policy.model.parameters() if p.requires_grad]
        self.optimiser = torch.optim.Adam(self.parameters, lr=schedule.rate)
        self.updates = 0
        self.steps = 0

    def update(self, trees: Sequence[Group]) -> GradientStatistics:
        """Take the steps of `schedule` on trees that an estimator has credited."""
        if self.schedule.minibatches == 1:
            statistics = self._whole_passes(trees)
        else:
            statistics = self._minibatch_passes(trees)
        self.updates += 1
        return statistics

    def gradient(self, tree: Group) -> Tensor:
        """The gradient of the loss of one credited tree, for the policy as it is, as one vector."""
        return self._gradient(self._decisions(list(tree.steps())))

    def _whole_passes(self, trees: Sequence[Group]) -> GradientStatistics:
        """One step a pass; the first looks at every tree's gradient by itself."""
        decisions = [self._decisions(list(tree.steps())) for tree in trees]
        statistics, gradient = self._gradient_of_trees(decisions)
        self._step(gradient)
        for _ in range(self.schedule.epochs - 1):
            self._step(sum(map(self._gradient, decisions), self._zeros()) / len(trees))
        return statistics

    def _minibatch_passes(self, trees: Sequence[Group]) -> GradientStatistics:
        """Several steps a pass, each on decisions of any tree."""
        decisions = self._decisions([step for tree in trees for step in tree.steps()])
        count = len(decisions.taken)
        norms = []
        for chosen in minibatches(
            count,
            parts=self.schedule.minibatches,
            epochs=self.schedule.epochs,
            seed=(self.seed, self.updates),
        ):
            gradient = self._gradient(decisions, chosen) * (count / len(chosen) / len(trees))
            norms.append(gradient.norm().item())
            self._step(gradient)
        return GradientStatistics(norms[0] if norms else 0.0, None)

    def _gradient_of_trees(self, trees: Sequence[_Decisions]) -> tuple[GradientStatistics, Tensor]:
        """The mean over trees of their gradients, and how far they lie apart."""
        total, squares = self._zeros(), 0.0
        for tree in trees:
            gradient = self._gradient(tree)
            total += gradient
            squares += gradient.double().square().sum().item()
        count = len(trees)
        mean = total / count
        square_of_mean = mean.double().square().sum().item()
        variance = None
        if count > 1:
            variance = max(0.0, (squares - count * square_of_mean) / (count - 1))
        return GradientStatistics(square_of_mean**0.5, variance), mean

    def _gradient(self, decisions: _Decisions, chosen: Sequence[int] | None = None) -> Tensor:
        """The gradient of the sum of losses of some decisions, or of all, as one vector."""
        some = range(len(decisions.taken)) if chosen is None else chosen
        for parameter in self.parameters:
            parameter.grad = torch.zeros_like(parameter)
        for batch in batches([decisions.taken[i].length for i in some]):
            self._loss(decisions, [some[i] for i in batch]).backward()  # type: ignore[no-untyped-call]
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        device = self.parameters[0].device  # layers may be on several
        return torch.cat([gradient.flatten().to(device) for gradient in gradients])

    def _loss(self, decisions: _Decisions, batch: Sequence[int]) -> Tensor:
        """The sum of the losses of some decisions."""
        config = self.config
        taken = [decisions.taken[i] for i in batch]
        now = self.policy.judge(taken)
        device = now.log_probs.device
        weights = decisions.weights[batch].to(device)
        advantages = decisions.advantages[batch, None].to(device)
        ratio = torch.exp(now.log_probs - _padded([decisions.old[i] for i in batch]).to(device))
        clipped = ratio.clamp(1 - config.clip, 1 + config.clip)
        gain = (torch.minimum(ratio * advantages, clipped * advantages) * now.parts).sum(1)
        loss = -(weights * (gain + config.entropy * now.entropy)).sum()
        if self.reference is not None and config.kl:
            with torch.no_grad():
                reference = self.reference.judge(taken)
            apart = self.policy.divergence(now.rows, reference.rows)
            loss = loss + config.kl * (weights * apart).sum()
        return loss

    def _step(self, gradient: Tensor) -> None:
        norm = gradient.norm()
        if not torch.isfinite(norm):
            raise DivergenceError(
                "the gradient is no longer finite: the policy has diverged. Start again with a "
                "lower --learning.rate or --learning.max-norm, or a --learning.kl; the best policy "
                "so far is in best/, and the last checkpoint is as it was"
            )
        if norm > self.config.max_norm:
            gradient = gradient * (self.config.max_norm / norm)
        parts = torch.split(gradient, [p.numel() for p in self.parameters])
        for parameter, part in zip(self.parameters, parts, strict=True):
            parameter.grad = part.view_as(parameter).to(parameter, copy=True)
        self.steps += 1
        for group in self.optimiser.param_groups:
            group["lr"] = self.schedule.rate * min(1.0, self.steps / max(1, self.config.warmup))
        self.optimiser.step()
        self.policy.weights_changed()

    def _decisions(self, steps: Sequence[Step]) -> _Decisions:
        everything = self.config.kl or self.config.entropy
        steps = [step for step in steps if step.advantage or everything]
        return _Decisions(
            self.policy.recall(steps) if steps else [],
            torch.tensor([step.weight for step in steps]),
            torch.tensor([step.advantage for step in steps]),
            [step.written_logprobs or (step.logprob,) for step in steps],
        )

    def _zeros(self) -> Tensor:
        return torch.zeros(
            sum(p.numel() for p in self.parameters), device=self.parameters[0].device
        )

    def state_dict(self) -> dict[str, Any]:
        """Weights and optimiser, for a checkpoint."""
        return {
            "model": self.policy.weights(),
            "optimiser": self.optimiser.state_dict(),
            "updates": self.updates,
            "steps": self.steps,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` gave."""
        self.policy.load_weights(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.updates = state["updates"]
        self.steps = state["steps"]


def _padded(rows: Sequence[Sequence[float]]) -> Tensor:
    """Rows of numbers, filled up with zeros on the right."""
    longest = max(len(row) for row in rows)
    return torch.tensor([[*row, *[0.0] * (longest - len(row))] for row in rows])
