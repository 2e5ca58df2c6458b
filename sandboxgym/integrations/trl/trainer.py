"""`GRPOTrainer` that takes the credit of every token from its rollouts, in place of its own."""

from __future__ import annotations

from typing import Any

import torch

from sandboxgym.core.errors import MissingDependencyError, SandboxGymError
from sandboxgym.integrations.trl.rollouts import TreeRollouts

try:
    from trl import GRPOTrainer
except ImportError as error:
    raise MissingDependencyError(
        'this trainer is a subclass of TRL\'s: pip install "sandboxgym[trl]"'
    ) from error


class CreditShapeError(SandboxGymError, ValueError):
    """Rollouts came with more or fewer credits than tokens."""


def episode_return(episode_return: list[float | None], **_: Any) -> list[float | None]:
    """The reward function for what `TreeRollouts` returns; for TRL's log alone."""
    return episode_return


class TreeGRPOTrainer(GRPOTrainer):
    """Learns from trees: the advantage of a token is the credit that its rollouts gave it.

    With `loss_type="dr_grpo"`, `beta=0` and one update per generation, the gradient is that of

        Σ over tokens  credit · log π(token)  /  (rows · max_completion_length)

    and with credits of nested leave-one-out that is the policy gradient, without bias. Credits of
    a tree are of the size of a return divided by its rows, so learning rates are larger than for
    GRPO.

    Args:
        rollouts: Fills the batches.
        **kwargs: As for `GRPOTrainer`. `reward_funcs` defaults to the return of the episode; what
            they say is logged and does not teach.
    """

    def __init__(self, *, rollouts: TreeRollouts, **kwargs: Any) -> None:
        kwargs.setdefault("reward_funcs", episode_return)
        super().__init__(rollout_func=rollouts, **kwargs)

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        # TRL puts what else a rollout function returns on the rows, for the reward functions.
        batch: dict[str, Any] = super()._generate_and_score_completions(inputs)
        credit = [row.pop("token_credits") for row in inputs]
        batch["advantages"] = _padded(credit, batch["completion_mask"])
        return batch


def _padded(credit: list[list[float]], mask: torch.Tensor) -> torch.Tensor:
    """Credits in the shape of the completions, whose padding is on the right."""
    padded = torch.zeros(mask.shape, dtype=torch.float32, device=mask.device)
    for row, values in enumerate(credit):
        if len(values) > padded.size(1):
            raise CreditShapeError(
                f"row {row} has {len(values)} credits for at most {padded.size(1)} tokens"
            )
        padded[row, : len(values)] = torch.tensor(values, device=mask.device)
    return padded
