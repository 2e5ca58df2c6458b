"""From credited trees to a changed policy: the surrogate loss, its gradient, one Adam step a pass.

    loss = - 1/trees · Σ over decisions  weight · min(r · A, clip(r, 1 - c, 1 + c) · A)  [+ KL]

with r the probability of the action now over the one when it was taken. In the first pass r is 1
and the gradient is that of `advantages`. Decisions with advantage 0 have no gradient and are not
computed; nothing else changes when they are left out, since every weight is fixed beforehand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from sandboxgym.core.errors import SandboxGymError
from sandboxgym_learners.config import LearningConfig
from sandboxgym_learners.policy import Encoded, Policy, Query, batches
from sandboxgym_learners.tree import Group


class DivergenceError(SandboxGymError, ArithmeticError):
    """Training has left the numbers behind; the last checkpoint has not."""


@dataclass(frozen=True)
class GradientStatistics:
    """The gradient of the first pass, before clipping.

    Attributes:
        norm: Its length.
        variance: Trace of the covariance of a single tree's gradient, estimated between the trees;
            None with a single tree.
    """

    norm: float
    variance: float | None


class _Decisions(NamedTuple):
    """The decisions of one tree that have a gradient."""

    encoded: list[Encoded]
    choices: list[int]
    weights: Tensor
    advantages: Tensor
    old: Tensor


class Learner:
    """Changes a policy by the gradient of credited trees."""

    def __init__(
        self, policy: Policy, config: LearningConfig, *, reference: Policy | None = None
    ) -> None:
        """Prepare to train `policy`; `reference` is what a KL term holds it close to."""
        if config.kl and reference is None:
            raise ValueError("a KL term needs a reference policy")
        self.policy = policy
        self.config = config
        self.reference = reference
        self.parameters = [p for p in policy.model.parameters() if p.requires_grad]
        self.optimiser = torch.optim.Adam(self.parameters, lr=config.rate)

    def update(self, trees: Sequence[Group]) -> GradientStatistics:
        """Take `epochs` optimiser steps on trees that an estimator has credited."""
        decisions = [self._decisions(tree) for tree in trees]
        statistics, gradient = self._gradient(decisions)
        self._step(gradient)
        for _ in range(self.config.epochs - 1):
            _, gradient = self._gradient(decisions)
            self._step(gradient)
        return statistics

    def _gradient(self, trees: Sequence[_Decisions]) -> tuple[GradientStatistics, Tensor]:
        """The mean over trees of their gradients, and how far they lie apart."""
        total = torch.zeros(sum(p.numel() for p in self.parameters))
        squares = 0.0
        for tree in trees:
            gradient = self._tree_gradient(tree)
            total += gradient
            squares += gradient.double().square().sum().item()
        count = len(trees)
        mean = total / count
        square_of_mean = mean.double().square().sum().item()
        variance = None
        if count > 1:
            variance = max(0.0, (squares - count * square_of_mean) / (count - 1))
        return GradientStatistics(square_of_mean**0.5, variance), mean

    def _tree_gradient(self, tree: _Decisions) -> Tensor:
        """The gradient of one tree's loss, as one vector."""
        for parameter in self.parameters:
            parameter.grad = torch.zeros_like(parameter)
        for batch in batches(tree.encoded):
            self._loss(tree, batch).backward()  # type: ignore[no-untyped-call]
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        return torch.cat([gradient.flatten() for gradient in gradients])

    def _loss(self, tree: _Decisions, batch: Sequence[int]) -> Tensor:
        """The part of a tree's loss that some of its decisions have."""
        encoded = [tree.encoded[i] for i in batch]
        log_probs = self.policy.log_probs(encoded)
        chosen = log_probs[range(len(batch)), [tree.choices[i] for i in batch]]
        weights, advantages = tree.weights[batch], tree.advantages[batch]
        ratio = torch.exp(chosen - tree.old[batch])
        clipped = ratio.clamp(1 - self.config.clip, 1 + self.config.clip)
        loss = -(weights * torch.minimum(ratio * advantages, clipped * advantages)).sum()
        if self.reference is not None and self.config.kl:
            with torch.no_grad():
                reference = self.reference.log_probs(encoded)
            loss = loss + self.config.kl * (weights * _divergence(log_probs, reference)).sum()
        return loss

    def _step(self, gradient: Tensor) -> None:
        norm = gradient.norm()
        if not torch.isfinite(norm):
            raise DivergenceError(
                "the gradient is no longer finite: the policy has diverged. Lower --learning.rate "
                "or --learning.max-norm, and resume from the last checkpoint or start again"
            )
        if norm > self.config.max_norm:
            gradient = gradient * (self.config.max_norm / norm)
        parts = torch.split(gradient, [p.numel() for p in self.parameters])
        for parameter, part in zip(self.parameters, parts, strict=True):
            parameter.grad = part.view_as(parameter).to(parameter.dtype, copy=True)
        self.optimiser.step()

    def _decisions(self, tree: Group) -> _Decisions:
        steps = [step for step in tree.steps() if step.advantage or self.config.kl]
        queries = [Query(step.prompt, step.candidates) for step in steps]
        return _Decisions(
            self.policy.encode(queries) if queries else [],
            [step.choice for step in steps],
            torch.tensor([step.weight for step in steps]),
            torch.tensor([step.advantage for step in steps]),
            torch.tensor([step.logprob for step in steps]),
        )

    def state_dict(self) -> dict[str, Any]:
        """Weights and optimiser, for a checkpoint."""
        return {"model": self.policy.model.state_dict(), "optimiser": self.optimiser.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` gave."""
        self.policy.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])


def _divergence(log_probs: Tensor, reference: Tensor) -> Tensor:
    """KL(π ‖ reference) of every row, exactly, over the commands there are."""
    there = torch.isfinite(log_probs)
    safe = torch.where(there, log_probs, 0.0)
    return (torch.where(there, safe.exp() * (safe - torch.where(there, reference, 0.0)), 0.0)).sum(
        1
    )
