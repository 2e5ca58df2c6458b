"""Rules that say what the state of a wrapper is.

A stack of wrappers is part of the state: restoring an environment and leaving `TimeLimit`'s counter
behind truncates the next episode at the wrong step. Each wrapper class therefore has a rule here,
or is declared by its author; one without a rule is refused, never guessed at.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import gymnasium as gym
from gymnasium import wrappers as gym_wrappers

from sandboxgym.core.errors import UncapturedStateError, UnknownWrapperError
from sandboxgym.core.plain import owned, plain_or_name
from sandboxgym.core.snapshot import Transition, WrapperState

AnyWrapper: TypeAlias = gym.Wrapper[Any, Any, Any, Any]


@dataclass(frozen=True)
class WrapperRule:
    """How one wrapper class is captured and put back.

    Attributes:
        get: Returns the wrapper's state (plain data) without changing it.
        set: Puts such a state back.
        view: What the wrapper makes of the last transition of the level below, without changing
            anything. The default hands it through.
        get_clock: Returns what follows the wall clock; it is kept out of digests.
        set_clock: Puts that back.
    """

    get: Callable[[Any], dict[str, Any]] = lambda wrapper: {}
    set: Callable[[Any, dict[str, Any]], None] = lambda wrapper, state: None
    view: Callable[[Any, Transition], Transition] = lambda wrapper, last: last
    get_clock: Callable[[Any], dict[str, Any]] = lambda wrapper: {}
    set_clock: Callable[[Any, dict[str, Any]], None] = lambda wrapper, clock: None


_rules: dict[type, WrapperRule] = {}


def register_wrapper_state(
    cls: type[AnyWrapper],
    get: Callable[[Any], dict[str, Any]],
    set: Callable[[Any, dict[str, Any]], None],  # noqa: A002 - mirrors `get`
    *,
    view: Callable[[Any, Transition], Transition] = lambda wrapper, last: last,
) -> None:
    """Declare the state of a wrapper class (exactly this class, not its subclasses).

    Args:
        cls: The wrapper class.
        get: Returns the wrapper's state as plain data, without changing the wrapper.
        set: Puts such a state back.
        view: What the wrapper makes of the last transition of the level below it; needed where it
            changes observation, reward, flags or info.
    """
    _rules[cls] = WrapperRule(get, set, view)


def stateless_wrapper(
    cls: type[AnyWrapper],
    *,
    view: Callable[[Any, Transition], Transition] = lambda wrapper, last: last,
) -> None:
    """Declare that a wrapper class (exactly this class) has no state of its own.

    Args:
        cls: The wrapper class.
        view: What the wrapper makes of the last transition of the level below it; needed where it
            changes observation, reward, flags or info.
    """
    _rules[cls] = WrapperRule(view=view)


def rule_for(wrapper: AnyWrapper) -> WrapperRule:
    """The declared rule of a wrapper.

    Raises:
        UnknownWrapperError: None is declared; the message shows the line that declares one.
    """
    cls = type(wrapper)
    try:
        return _rules[cls]
    except KeyError:
        raise UnknownWrapperError(
            f"no rule says what the state of the wrapper {cls.__module__}.{cls.__qualname__} is, "
            f"so a snapshot could silently miss it. Declare it with "
            f"sandboxgym.stateless_wrapper({cls.__name__}) if it keeps nothing between steps, or "
            f"with sandboxgym.register_wrapper_state({cls.__name__}, get, set)"
        ) from None


def name_of(env: gym.Env[Any, Any]) -> str:
    """The name under which a wrapper or environment stands in a snapshot."""
    cls = type(env)
    return f"{cls.__module__}:{cls.__qualname__}"


def constructed_with(wrapper: AnyWrapper) -> dict[str, Any]:
    """The arguments of a wrapper's constructor as Gymnasium recorded them, without `env`."""
    saved: dict[str, Any] = getattr(wrapper, "_saved_kwargs", {})
    return {name: value for name, value in saved.items() if name != "env"}


def kwargs_of(wrapper: AnyWrapper) -> dict[str, Any]:
    """The arguments of a wrapper's constructor as plain data."""
    return {name: plain_or_name(value) for name, value in constructed_with(wrapper).items()}


def capture(wrapper: AnyWrapper) -> WrapperState:
    """The state of one wrapper."""
    rule = rule_for(wrapper)
    return WrapperState(
        name=name_of(wrapper),
        kwargs=kwargs_of(wrapper),
        state=owned(rule.get(wrapper), f"state of {type(wrapper).__name__}"),
        clock=rule.get_clock(wrapper),
    )


def apply(wrapper: AnyWrapper, saved: WrapperState) -> None:
    """Put the state of one wrapper back."""
    rule = rule_for(wrapper)
    rule.set(wrapper, owned(saved.state))
    rule.set_clock(wrapper, saved.clock)


def _set_time_limit(wrapper: gym_wrappers.TimeLimit[Any, Any], state: dict[str, Any]) -> None:
    wrapper._elapsed_steps = state["elapsed_steps"]


def _view_time_limit(wrapper: gym_wrappers.TimeLimit[Any, Any], last: Transition) -> Transition:
    elapsed = wrapper._elapsed_steps
    if elapsed is not None and elapsed >= wrapper._max_episode_steps:
        return replace(last, truncated=True)
    return last


def _set_order_enforcing(
    wrapper: gym_wrappers.OrderEnforcing[Any, Any], state: dict[str, Any]
) -> None:
    wrapper._has_reset = state["has_reset"]


def _reset_checker(
    wrapper: gym_wrappers.PassiveEnvChecker[Any, Any], state: dict[str, Any]
) -> None:
    # The checker compares consecutive results to warn about shared buffers. What came before a
    # restore is no predecessor of what comes after it, so that comparison ends here.
    wrapper.checked_reset = wrapper.checked_step = wrapper.checked_data_reuse = True
    wrapper._previous_data = None


def _get_statistics(wrapper: gym_wrappers.RecordEpisodeStatistics[Any, Any]) -> dict[str, Any]:
    return {
        "episode_count": wrapper.episode_count,
        "episode_returns": wrapper.episode_returns,
        "episode_lengths": wrapper.episode_lengths,
        "return_queue": list(wrapper.return_queue),
        "length_queue": list(wrapper.length_queue),
    }


def _set_statistics(
    wrapper: gym_wrappers.RecordEpisodeStatistics[Any, Any], state: dict[str, Any]
) -> None:
    wrapper.episode_count = state["episode_count"]
    wrapper.episode_returns = state["episode_returns"]
    wrapper.episode_lengths = state["episode_lengths"]
    _refill(wrapper.return_queue, state["return_queue"])
    _refill(wrapper.length_queue, state["length_queue"])


def _get_statistics_clock(
    wrapper: gym_wrappers.RecordEpisodeStatistics[Any, Any],
) -> dict[str, Any]:
    elapsed = time.perf_counter() - wrapper.episode_start_time
    return {"elapsed": elapsed, "time_queue": list(wrapper.time_queue)}


def _set_statistics_clock(
    wrapper: gym_wrappers.RecordEpisodeStatistics[Any, Any], clock: dict[str, Any]
) -> None:
    wrapper.episode_start_time = time.perf_counter() - clock["elapsed"]
    _refill(wrapper.time_queue, clock["time_queue"])


def _view_statistics(
    wrapper: gym_wrappers.RecordEpisodeStatistics[Any, Any], last: Transition
) -> Transition:
    if not last.ended:
        return last
    if not wrapper.time_queue:
        raise UncapturedStateError(
            "RecordEpisodeStatistics(buffer_length=0) forgets the time of the episode that it put "
            "into the info: give it a buffer of at least 1"
        )
    episode = {
        "r": wrapper.episode_returns,
        "l": wrapper.episode_lengths,
        "t": wrapper.time_queue[-1],
    }
    return replace(last, info={**last.info, wrapper._stats_key: episode})


def _refill(queue: Any, items: list[Any]) -> None:
    queue.clear()
    queue.extend(items)


_rules[gym_wrappers.PassiveEnvChecker] = WrapperRule(set=_reset_checker)
_rules[gym_wrappers.OrderEnforcing] = WrapperRule(
    get=lambda wrapper: {"has_reset": wrapper._has_reset}, set=_set_order_enforcing
)
_rules[gym_wrappers.TimeLimit] = WrapperRule(
    get=lambda wrapper: {"elapsed_steps": wrapper._elapsed_steps},
    set=_set_time_limit,
    view=_view_time_limit,
)
_rules[gym_wrappers.RecordEpisodeStatistics] = WrapperRule(
    get=_get_statistics,
    set=_set_statistics,
    view=_view_statistics,
    get_clock=_get_statistics_clock,
    set_clock=_set_statistics_clock,
)
