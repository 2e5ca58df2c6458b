"""Rules of the wrappers that change actions."""

from __future__ import annotations

from typing import Any

from sandboxgym.core.wrapper_rules.rule import WrapperRule

_STICKY = ("last_action", "is_sticky_actions", "num_repeats", "repeats_taken")


def _set_sticky(wrapper: Any, state: dict[str, Any]) -> None:
    for name in _STICKY:
        setattr(wrapper, name, state[name])


_FUNCTION_OF_ACTION = WrapperRule(recomputable=True)
_PURE = ("ClipAction", "DiscretizeAction", "RescaleAction")

RULES = {
    **{f"gymnasium.wrappers.transform_action:{name}": _FUNCTION_OF_ACTION for name in _PURE},
    "gymnasium.wrappers.transform_action:TransformAction": WrapperRule(
        recomputable=True,
        captured="nothing: the function has to be pure",
        note="a function that keeps something, or draws random numbers, is not captured",
    ),
    "gymnasium.wrappers.stateful_action:StickyAction": WrapperRule(
        get=lambda wrapper: {name: getattr(wrapper, name) for name in _STICKY},
        set=_set_sticky,
        recomputable=True,
        captured="the last action, and how often it was and will be repeated",
        note="it draws from the environment's generator, which the recipe notes",
    ),
    "gymnasium.wrappers.stateful_action:RepeatAction": WrapperRule(view=None),
}
