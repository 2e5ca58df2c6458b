"""Rules of the wrappers that gather running statistics to normalize with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sandboxgym.core.snapshot import Transition
from sandboxgym.core.wrapper_rules.rule import Statistics, WrapperRule

_NOTE = "statistics are kept by a restore, and rewound with `rewind_statistics=True` and by a fork"


def _statistics_of(attribute: str) -> Statistics:
    """The rule of a `RunningMeanStd` that a wrapper has under this name."""

    def get(wrapper: Any) -> dict[str, Any]:
        running = getattr(wrapper, attribute)
        return {
            "mean": running.mean,
            "var": running.var,
            "count": running.count,
            "update": wrapper.update_running_mean,
        }

    def put(wrapper: Any, state: dict[str, Any]) -> None:
        running = getattr(wrapper, attribute)
        running.mean, running.var, running.count = state["mean"], state["var"], state["count"]
        wrapper.update_running_mean = state["update"]

    # A new RunningMeanStd counts from a small epsilon, each value adds one.
    return Statistics(get, put, lambda wrapper: bool(getattr(wrapper, attribute).count >= 1))


def _view_normalized(wrapper: Any, last: Transition) -> Transition:
    running = wrapper.obs_rms
    scaled = (last.obs - running.mean) / np.sqrt(running.var + wrapper.epsilon)
    return replace(last, obs=np.float32(scaled))


def _view_scaled(wrapper: Any, last: Transition) -> Transition:
    scale = np.sqrt(wrapper.return_rms.var + wrapper.epsilon)
    return replace(last, reward=last.reward / scale)


def _set_discounted(wrapper: Any, state: dict[str, Any]) -> None:
    wrapper.discounted_reward = state["discounted_reward"]


RULES = {
    "gymnasium.wrappers.stateful_observation:NormalizeObservation": WrapperRule(
        view=_view_normalized,
        statistics=_statistics_of("obs_rms"),
        captured="the running mean, variance and count",
        note=_NOTE,
    ),
    "gymnasium.wrappers.stateful_reward:NormalizeReward": WrapperRule(
        get=lambda wrapper: {"discounted_reward": wrapper.discounted_reward},
        set=_set_discounted,
        view=_view_scaled,
        statistics=_statistics_of("return_rms"),
        captured="the discounted return so far; the running mean, variance and count",
        note=_NOTE,
    ),
}
