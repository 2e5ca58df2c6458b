"""Rules that say what the state of a wrapper is.

A stack of wrappers is part of the state: restoring an environment and leaving `TimeLimit`'s counter
behind truncates the next episode at the wrong step. Each wrapper class therefore has a rule
(`wrapper_rules` has Gymnasium's), or is declared by its author; one without a rule is refused,
never guessed at.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeAlias

import gymnasium as gym

from sandboxgym.core import rng
from sandboxgym.core.describe import described, fingerprints
from sandboxgym.core.errors import UncapturedStateError, UnknownWrapperError
from sandboxgym.core.snapshot import Transition, WrapperState
from sandboxgym.core.tensors import plain, revived
from sandboxgym.core.wrapper_rules import GYMNASIUM_RULES, View, WrapperRule, handed_through

AnyWrapper: TypeAlias = gym.Wrapper[Any, Any, Any, Any]

_declared: dict[type, WrapperRule] = {}


def register_wrapper_state(
    cls: type[AnyWrapper],
    get: Callable[[Any], dict[str, Any]],
    set: Callable[[Any, dict[str, Any]], None],  # noqa: A002 - mirrors `get`
    *,
    view: View = handed_through,
) -> None:
    """Declare the state of a wrapper class (exactly this class, not its subclasses).

    Args:
        cls: The wrapper class.
        get: Returns the wrapper's state as plain data, without changing the wrapper. Random
            generators that the wrapper has of its own belong to it.
        set: Puts such a state back.
        view: What the wrapper makes of the last transition of the level below it; needed where it
            changes observation, reward, flags or info and no `Forkable` is around it.
    """
    _declared[cls] = WrapperRule(get, set, view)


def stateless_wrapper(cls: type[AnyWrapper], *, view: View = handed_through) -> None:
    """Declare that a wrapper class (exactly this class) has no state of its own.

    Args:
        cls: The wrapper class.
        view: What the wrapper makes of the last transition of the level below it; needed where it
            changes observation, reward, flags or info and no `Forkable` is around it.
    """
    _declared[cls] = WrapperRule(view=view)


def rule_for(wrapper: AnyWrapper) -> WrapperRule:
    """The declared rule of a wrapper.

    Raises:
        UnknownWrapperError: None is declared; the message shows the line that declares one.
    """
    cls = type(wrapper)
    rule = _find(wrapper)
    if rule is None:
        raise UnknownWrapperError(
            f"no rule says what the state of the wrapper {cls.__module__}.{cls.__qualname__} is, "
            f"so a snapshot could silently miss it. Declare it with "
            f"sandboxgym.stateless_wrapper({cls.__name__}) if it keeps nothing between steps, or "
            f"with sandboxgym.register_wrapper_state({cls.__name__}, get, set)"
        )
    return rule


def is_recomputable(wrapper: AnyWrapper) -> bool:
    """Whether what a wrapper returned last follows at any time from its state."""
    rule = _find(wrapper)
    return rule is not None and rule.recomputable


def name_of(env: gym.Env[Any, Any]) -> str:
    """The name under which a wrapper or environment stands in a snapshot."""
    cls = type(env)
    return f"{cls.__module__}:{cls.__qualname__}"


def kwargs_of(wrapper: AnyWrapper) -> dict[str, Any]:
    """The arguments of a wrapper's constructor as plain data."""
    return {name: described(value) for name, value in _arguments(wrapper).items()}


def functions_of(wrapper: AnyWrapper) -> dict[str, str]:
    """Hashes of the functions among the arguments of a wrapper's constructor."""
    return fingerprints(_arguments(wrapper))


def constructed_with(wrapper: AnyWrapper) -> dict[str, Any]:
    """The arguments of a wrapper's constructor, to construct another one that shares none."""
    return {
        name: value if isinstance(value, ModuleType) else copy.deepcopy(value)
        for name, value in _arguments(wrapper).items()
    }


def capture(wrapper: AnyWrapper, shown: Transition | None = None) -> WrapperState:
    """The state of one wrapper.

    Args:
        wrapper: The wrapper.
        shown: What it last returned, if the snapshot has to remember that.
    """
    rule = rule_for(wrapper)
    where = f"of {type(wrapper).__name__}"
    statistics = {} if rule.statistics is None else rule.statistics.get(wrapper)
    return WrapperState(
        name=name_of(wrapper),
        kwargs=kwargs_of(wrapper),
        state=plain(rule.get(wrapper), f"state {where}"),
        clock=rule.get_clock(wrapper),
        rng=rng.capture_own_spaces(wrapper),
        statistics=plain(statistics, f"statistics {where}"),
        functions=functions_of(wrapper),
        shown=shown,
    )


def apply(wrapper: AnyWrapper, saved: WrapperState, *, rewind_statistics: bool = True) -> None:
    """Put the state of one wrapper back.

    Args:
        wrapper: The wrapper.
        saved: What `capture` returned for an equal one.
        rewind_statistics: Put running statistics back too, instead of keeping those that the
            wrapper has gathered.
    """
    rule = rule_for(wrapper)
    rule.set(wrapper, revived(saved.state))
    rule.set_clock(wrapper, saved.clock)
    rng.apply_own_spaces(wrapper, saved.rng)
    statistics = rule.statistics
    if statistics is not None and (rewind_statistics or not statistics.gathered(wrapper)):
        statistics.set(wrapper, revived(saved.statistics))


def view(wrapper: AnyWrapper, last: Transition) -> Transition:
    """What a wrapper made of the last transition of the level below.

    Raises:
        UncapturedStateError: The wrapper has not kept what that would take.
    """
    look = rule_for(wrapper).view
    if look is None:
        name = type(wrapper).__name__
        raise UncapturedStateError(
            f"{name} does not keep all that it returns, so nothing can say now what it returned "
            "last: put a sandboxgym.Forkable around the outermost wrapper, reset, and capture that"
        )
    return look(wrapper, last)


def _find(wrapper: AnyWrapper) -> WrapperRule | None:
    return _declared.get(type(wrapper)) or GYMNASIUM_RULES.get(name_of(wrapper))


def _arguments(wrapper: AnyWrapper) -> dict[str, Any]:
    """The arguments of a wrapper's constructor as Gymnasium recorded them, without `env`."""
    saved: dict[str, Any] = getattr(wrapper, "_saved_kwargs", {})
    return {name: value for name, value in saved.items() if name != "env"}
