"""Who gets the credit: estimators that write an advantage and a weight on every decision of a tree.

All of them serve one gradient estimate, to be followed upwards:

    Σ over decisions  weight · advantage · ∇ log π(action | prompt)

summed over one tree and averaged over trees. With `nested_loo`, `rloo` and `vineppo` its
expectation is the policy gradient exactly, provided that the members of every group are independent
draws from the current policy (temperature 1, top-p 1) and that the decision to branch was taken
before the action was drawn (see `branching`). `grpo` and `paper` are here for comparison; their
docstrings say what is wrong with them. `gae` trusts a critic.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from sandboxgym_learners.branching import warn_biased
from sandboxgym_learners.tree import Group, Segment, TreeFormatError

Estimator = Callable[[Group], None]


def nested_loo(tree: Group, *, backbone_share: float | None = None, mix: float = 1.0) -> None:
    """Leave-one-out over nested groups: the one rule behind RLOO, BPO and VinePPO.

    With R(segment) = its own rewards + the mean R of the members of the group at its end,

        advantage = R(segment) - mean R of the *other* members of its group
        weight    = Π over the groups on its path of 1 / planned size

    for every decision of the segment. R is an unbiased estimate of what the segment's actions lead
    to, and the other members know nothing of these actions, so that the baseline takes nothing
    away in expectation. A group with one member has nothing to compare with: advantage 0.

    Source: leave-one-out is RLOO (Ahmadian et al. 2024); groups of siblings at branch points are
    BPO (2607.14171), here with a credit for the shared prefix that is not zero.

    Args:
        tree: The tree to write on.
        backbone_share: In every group below the root the first member weighs this much and each
            other one (1 - backbone_share) / (planned - 1), in place of 1 / planned. Unbiased for
            any value that was fixed before sampling.
        mix: λ. Below the root, the baseline becomes λ · (mean R of the other siblings) + (1 - λ) ·
            (mean R of the other roots, less the rewards collected above). Unbiased for any λ that
            was fixed before sampling. Anything but 1 needs two roots.

    Raises:
        ValueError: `mix` is not 1 and the tree has a single root.
        TreeFormatError: A group has no member, or more members than planned.
    """
    if mix != 1 and len(tree.members) < 2:
        raise ValueError(f"mix={mix} takes a baseline from the other roots; this tree has only one")
    tree.check()
    values = [root.mean_return() for root in tree.members]
    for root, value, advantage in zip(tree.members, values, leave_one_out(values), strict=True):
        _assign(root, advantage, 1 / tree.planned)
        if root.branch is not None:
            other_roots = value - advantage
            ahead = other_roots - root.own_reward()
            _credit_group(root.branch, 1 / tree.planned, ahead, backbone_share, mix)


def _credit_group(
    group: Group, weight: float, ahead: float, backbone_share: float | None, mix: float
) -> None:
    """Apply the rule to a group below the root and to all groups below it.

    `weight` is that of the segment above, `ahead` what the other roots predict for the rewards
    still to come.
    """
    group.check()
    values = [member.mean_return() for member in group.members]
    for index, member in enumerate(group.members):
        advantage = mix * leave_one_out(values)[index] + (1 - mix) * (values[index] - ahead)
        if len(values) == 1:
            advantage = 0.0
        share = weight * _share(index, group.planned, backbone_share)
        _assign(member, advantage, share)
        if member.branch is not None:
            _credit_group(member.branch, share, ahead - member.own_reward(), backbone_share, mix)


def rloo(tree: Group) -> None:
    """REINFORCE leave-one-out: `nested_loo` on a tree that is its root group alone.

        advantage = return - mean return of the other episodes,  weight = 1/N

    Source: RLOO (Ahmadian et al. 2024). Unbiased.

    Raises:
        TreeFormatError: The tree branches.
    """
    _require_flat(tree, "rloo")
    nested_loo(tree)


def grpo(tree: Group, *, normalise: bool = False) -> None:
    """Group-relative: the return less the mean of all episodes, the judged one included.

        advantage = return - mean return [ / standard deviation of the returns ],  weight = 1/N

    Because an episode is part of its own baseline, the expectation is (N - 1)/N of the gradient.
    Dividing by the standard deviation makes it biased in direction too.

    Source: GRPO (Shao et al. 2024), which divides by the standard deviation.

    Args:
        tree: The tree to write on.
        normalise: Divide by the sample standard deviation (+ 1e-6). Says once that this is biased.

    Raises:
        TreeFormatError: The tree branches.
    """
    _require_flat(tree, "grpo")
    tree.check()
    values = [root.mean_return() for root in tree.members]
    centre = statistics.fmean(values)
    scale = 1.0
    if normalise and len(values) > 1:
        warn_biased("grpo(normalise=True) divides by the group's standard deviation: biased")
        scale = statistics.stdev(values) + 1e-6
    for root, value in zip(tree.members, values, strict=True):
        _assign(root, (value - centre) / scale, 1 / tree.planned)


def gae(tree: Group, *, gamma: float = 1.0, trace: float = 0.95) -> None:
    """Generalised advantage estimation: a critic's values in place of other episodes.

        δ_t = r_t + g · V(s_t+1) - V(s_t),  advantage = Σ_l (g · λ)^l δ_t+l,  weight = 1/N

    with g = gamma, and V from `Step.value`, 0 after the end. λ = 1 takes the critic as a baseline
    alone, and is unbiased for g = 1 if the critic has not seen these episodes; λ < 1 believes what
    it says of what comes next, which is biased by its error and less noisy. advantage + value is
    the λ-return that the critic learns from.

    Source: GAE (Schulman et al. 2016), as in PPO (Schulman et al. 2017).

    Args:
        tree: The tree to write on.
        gamma: What a reward one decision later is worth.
        trace: λ.

    Raises:
        TreeFormatError: The tree branches.
    """
    _require_flat(tree, "gae")
    tree.check()
    for root in tree.members:
        advantage = following = 0.0
        for step in reversed(root.steps):
            surprise = step.reward + gamma * following - step.value
            advantage = surprise + gamma * trace * advantage
            following = step.value
            step.advantage, step.weight = advantage, 1 / tree.planned


def standardise(trees: Sequence[Group]) -> None:
    """Shift and scale the advantages of an update to mean 0 and standard deviation 1.

    Over all decisions of all trees, as PPO does: Adam then sees gradients of the same size whatever
    the returns are. Biased, since the judged decisions are part of the mean.
    """
    steps = [step for tree in trees for step in tree.steps()]
    if len(steps) < 2:
        return
    centre = statistics.fmean(step.advantage for step in steps)
    scale = statistics.stdev((step.advantage for step in steps), centre) + 1e-6
    for step in steps:
        step.advantage = (step.advantage - centre) / scale


def vineppo(tree: Group) -> None:
    """Monte Carlo values from a group at every step; only the backbones learn.

        advantage = reward + V̂(s') - V̂(s),  weight = 1/B on the backbones, 0 on the forks

    which is `nested_loo` with all the weight of a group on its first member: V̂(s') is the mean over
    the group that opens after the action, V̂(s) the mean over the forks of the group before it.

    Source: VinePPO (Kazemnejad et al. 2024). Unbiased.
    """
    nested_loo(tree, backbone_share=1.0)


def paper(tree: Group, *, decay: float = 0.95) -> None:
    """The credit rule of BPO as described, for reproduction. The prefix gets no signal.

        advantage = A + decay^d · (mean A of the group at the segment's end)

    where A is the leave-one-out advantage of the segment in its group (0 for a root segment) and d
    the number of decisions from here to that group. Leave-one-out advantages of siblings add up
    to zero, so the second term is zero whatever the decay, and decisions before the first branch
    point learn nothing. Weights are those of `nested_loo`.

    Source: BPO (2607.14171). Biased; says so once.
    """
    warn_biased("paper() gives the decisions before a branch point no learning signal: biased")
    for visit in tree.visits():
        if visit.level == 0:
            _assign(visit.segment, 0.0, visit.weight)
        if visit.segment.branch is None:
            continue
        group = visit.segment.branch
        advantages = leave_one_out([member.mean_return() for member in group.members])
        for member, advantage in zip(group.members, advantages, strict=True):
            _assign(member, advantage, visit.weight / group.planned)
        carried = statistics.fmean(advantages)
        for distance, step in enumerate(reversed(visit.segment.steps), start=1):
            step.advantage += decay**distance * carried


def leave_one_out(values: Sequence[float]) -> list[float]:
    """Each value less the mean of the others; 0 for a value that is alone.

    Summing differences, rather than subtracting a mean, makes equal values give exactly 0.
    """
    others = max(len(values) - 1, 1)
    return [sum(value - other for other in values) / others for value in values]


def _share(index: int, planned: int, backbone_share: float | None) -> float:
    """Weight of a member within its group; the shares of a full group add up to 1."""
    if backbone_share is None or planned == 1:
        return 1 / planned
    return backbone_share if index == 0 else (1 - backbone_share) / (planned - 1)


def _assign(segment: Segment, advantage: float, weight: float) -> None:
    for step in segment.steps:
        step.advantage = advantage
        step.weight = weight


def _require_flat(tree: Group, name: str) -> None:
    if any(root.branch is not None for root in tree.members):
        raise TreeFormatError(
            f"{name} compares whole independent episodes, but this tree branches; "
            "use nested_loo, or collect without branch points"
        )
