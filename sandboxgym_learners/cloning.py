"""The warm start: imitate an expert's decisions until the policy solves some of the tasks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from sandboxgym_learners.config import CloningConfig
from sandboxgym_learners.policy import batches
from sandboxgym_learners.scoring import ScoringPolicy
from sandboxgym_learners.worlds import Demonstration


def clone(
    policy: ScoringPolicy, decisions: Sequence[Demonstration], config: CloningConfig, *, seed: int
) -> float:
    """Lower the cross-entropy of the expert's choices among the admissible commands.

    Returns:
        The mean cross-entropy over the last tenth of the steps.
    """
    dice = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
    optimiser = torch.optim.Adam(policy.model.parameters(), lr=config.rate)
    encoded = policy.encode([decision.query for decision in decisions])
    choices = [decision.choice for decision in decisions]
    losses: list[float] = []
    order: list[int] = []
    for _ in range(config.steps):
        while len(order) < config.batch:
            order += dice.permutation(len(decisions)).tolist()
        drawn, order = order[: config.batch], order[config.batch :]
        optimiser.zero_grad()
        loss = 0.0
        for batch in batches([encoded[i].length for i in drawn]):
            picked = [drawn[place] for place in batch]
            log_probs = policy.log_probs([encoded[i] for i in picked])
            chosen = log_probs[range(len(picked)), [choices[i] for i in picked]]
            part = -chosen.sum() / len(drawn)
            part.backward()  # type: ignore[no-untyped-call]
            loss += part.item()
        optimiser.step()
        losses.append(loss)
    last = losses[-max(1, len(losses) // 10) :]
    return sum(last) / len(last) if last else float("nan")
