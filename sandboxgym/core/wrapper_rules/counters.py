"""Rules of the wrappers that `gymnasium.make` and `sandboxgym.register` apply, and the like."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from sandboxgym.core.errors import UncapturedStateError
from sandboxgym.core.snapshot import Transition
from sandboxgym.core.wrapper_rules.rule import WrapperRule


def refill(queue: Any, items: list[Any]) -> None:
    """Give a deque other contents and leave its length limit."""
    queue.clear()
    queue.extend(items)


def _set_elapsed(wrapper: Any, state: dict[str, Any]) -> None:
    wrapper._elapsed_steps = state["elapsed_steps"]


def _view_time_limit(wrapper: Any, last: Transition) -> Transition:
    elapsed = wrapper._elapsed_steps
    if elapsed is not None and elapsed >= wrapper._max_episode_steps:
        return replace(last, truncated=True)
    return last


def _set_has_reset(wrapper: Any, state: dict[str, Any]) -> None:
    wrapper._has_reset = state["has_reset"]


def _set_autoreset(wrapper: Any, state: dict[str, Any]) -> None:
    wrapper.autoreset = state["autoreset"]


def _end_checks(wrapper: Any, state: dict[str, Any]) -> None:
    # The checker compares consecutive results to warn about shared buffers. What came before a
    # restore is no predecessor of what comes after it, so that comparison ends here.
    wrapper.checked_reset = wrapper.checked_step = wrapper.checked_data_reuse = True
    wrapper._previous_data = None


def _get_episode(wrapper: Any) -> dict[str, Any]:
    return {
        "episode_count": wrapper.episode_count,
        "episode_returns": wrapper.episode_returns,
        "episode_lengths": wrapper.episode_lengths,
        "return_queue": list(wrapper.return_queue),
        "length_queue": list(wrapper.length_queue),
    }


def _set_episode(wrapper: Any, state: dict[str, Any]) -> None:
    wrapper.episode_count = state["episode_count"]
    wrapper.episode_returns = state["episode_returns"]
    wrapper.episode_lengths = state["episode_lengths"]
    refill(wrapper.return_queue, state["return_queue"])
    refill(wrapper.length_queue, state["length_queue"])


def _get_episode_clock(wrapper: Any) -> dict[str, Any]:
    elapsed = time.perf_counter() - wrapper.episode_start_time
    return {"elapsed": elapsed, "time_queue": list(wrapper.time_queue)}


def _set_episode_clock(wrapper: Any, clock: dict[str, Any]) -> None:
    wrapper.episode_start_time = time.perf_counter() - clock["elapsed"]
    refill(wrapper.time_queue, clock["time_queue"])


def _view_episode(wrapper: Any, last: Transition) -> Transition:
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


def _set_ended(wrapper: Any, state: dict[str, Any]) -> None:
    wrapper._ended = state["ended"]


RULES = {
    "sandboxgym.core.front:Forkable": WrapperRule(
        get=lambda wrapper: {"ended": wrapper._ended},
        set=_set_ended,
        recomputable=True,
        captured="whether the episode has ended",
    ),
    "gymnasium.wrappers.common:TimeLimit": WrapperRule(
        get=lambda wrapper: {"elapsed_steps": wrapper._elapsed_steps},
        set=_set_elapsed,
        view=_view_time_limit,
        recomputable=True,
        captured="the number of steps taken",
    ),
    "gymnasium.wrappers.common:OrderEnforcing": WrapperRule(
        get=lambda wrapper: {"has_reset": wrapper._has_reset},
        set=_set_has_reset,
        recomputable=True,
        captured="whether it was reset",
    ),
    "gymnasium.wrappers.common:PassiveEnvChecker": WrapperRule(
        set=_end_checks,
        recomputable=True,
        captured="nothing: its checks have no effect on an episode",
        note="a restore ends its checks of the first reset and step",
    ),
    "gymnasium.wrappers.common:Autoreset": WrapperRule(
        get=lambda wrapper: {"autoreset": wrapper.autoreset},
        set=_set_autoreset,
        recomputable=True,
        captured="whether the next step resets",
    ),
    "gymnasium.wrappers.common:RecordEpisodeStatistics": WrapperRule(
        get=_get_episode,
        set=_set_episode,
        view=_view_episode,
        recomputable=True,
        get_clock=_get_episode_clock,
        set_clock=_set_episode_clock,
        captured="return and length so far, the number of episodes, the three queues",
        note="times are put back too, but are not in the digest",
    ),
}
