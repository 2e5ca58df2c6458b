"""A rule for each of Gymnasium's wrappers, by name, so that none has to be imported.

Several need torch, jax or OpenCV, and which of them exist depends on Gymnasium's version.
"""

from sandboxgym.core.wrapper_rules import (
    actions,
    atari,
    conversions,
    counters,
    normalizing,
    observations,
    rendering,
    rewards,
)
from sandboxgym.core.wrapper_rules.rule import Statistics, View, WrapperRule, handed_through

__all__ = ["GYMNASIUM_RULES", "Statistics", "View", "WrapperRule", "handed_through"]

GYMNASIUM_RULES: dict[str, WrapperRule] = {
    **counters.RULES,
    **observations.RULES,
    **actions.RULES,
    **rewards.RULES,
    **normalizing.RULES,
    **rendering.RULES,
    **atari.RULES,
    **conversions.RULES,
}
