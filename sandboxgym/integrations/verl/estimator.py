"""verl's `adv_estimator=sandboxgym_nested_loo`, for the rows of `TreeAgentLoop`.

verl tells an estimator the rewards, the mask, and which rows have a prompt in common, and no more.
Where a row branched off is not among it. So the loop, which knows the tree, credits its segments by
nested leave-one-out, makes a row of each, and gives the credit in place of a reward; the estimator
puts it on the tokens. What episodes returned is in the log as `episode_return`.

Import this module where verl's trainer runs.
"""

from __future__ import annotations

from typing import Any

import torch

from sandboxgym.core.errors import MissingDependencyError

try:
    from verl.trainer.ppo.core_algos import register_adv_est
except ImportError as error:
    raise MissingDependencyError(
        'the estimator is registered with verl: pip install "sandboxgym[verl]"'
    ) from error

NAME = "sandboxgym_nested_loo"


@register_adv_est(NAME)
def credit_of_segments(
    token_level_rewards: torch.Tensor,
    response_mask: torch.Tensor,
    index: Any = None,
    config: Any = None,
    **_: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Advantages and returns, which are the same here: the credit of a row on the model's tokens.

    With `loss_agg_mode=token-sum` the loss of a batch is what nested leave-one-out asks for. Other
    modes divide by how long the rows are, or how many of them are empty, which is up to the policy.
    """
    with torch.no_grad():
        credit = token_level_rewards.sum(dim=-1, keepdim=True) * response_mask
    return credit, credit
