"""Rules of the wrappers that change rewards."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sandboxgym.core.snapshot import Transition
from sandboxgym.core.wrapper_rules.rule import WrapperRule


def _view_reward(wrapper: Any, last: Transition) -> Transition:
    return replace(last, reward=wrapper.reward(last.reward))


RULES = {
    "gymnasium.wrappers.transform_reward:ClipReward": WrapperRule(
        view=_view_reward, recomputable=True
    ),
    "gymnasium.wrappers.transform_reward:TransformReward": WrapperRule(
        view=_view_reward,
        captured="nothing: the function has to be pure",
        note="a function that keeps something, or draws random numbers, is not captured",
    ),
}
