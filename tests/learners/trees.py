"""Short ways to write rollout trees down."""

from __future__ import annotations

from sandboxgym_learners.tree import Group, Segment, Step


def step(reward: float = 0.0, *, action: str = "go", depth: int = 0, entropy: float = 0.5) -> Step:
    return Step(
        prompt="a prompt",
        candidates=("go", "stay"),
        choice=0,
        action=action,
        logprob=-0.5,
        entropy=entropy,
        reward=reward,
        observation="something happens",
        depth=depth,
    )


def segment(*rewards: float, branch: Group | None = None, success: bool | None = None) -> Segment:
    return Segment([step(reward) for reward in rewards], branch, success)


def group(*members: Segment, planned: int | None = None) -> Group:
    return Group(list(members), len(members) if planned is None else planned)


def example() -> Group:
    """Two roots; the first branches in two, and the first of these in three.

    Mean returns: innermost (3, 0, 0) -> 1; first branch (1 + 1, 4) -> 3; roots (1 + 3, 2) -> 3.
    """
    innermost = group(
        segment(3, success=True), segment(0, success=False), segment(0, 0, success=False)
    )
    first = group(segment(1, branch=innermost), segment(4, success=True))
    return group(segment(0, 1, branch=first), segment(2, success=False))
