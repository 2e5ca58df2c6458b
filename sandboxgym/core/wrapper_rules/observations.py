"""Rules of the wrappers that change or remember observations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gymnasium.vector.utils import concatenate, create_empty_array

from sandboxgym.core.snapshot import Transition
from sandboxgym.core.wrapper_rules.counters import refill
from sandboxgym.core.wrapper_rules.rule import WrapperRule


def _view_observation(wrapper: Any, last: Transition) -> Transition:
    return replace(last, obs=wrapper.observation(last.obs))


def _set_timesteps(wrapper: Any, state: dict[str, Any]) -> None:
    wrapper.timesteps = state["timesteps"]


def _set_frames(wrapper: Any, state: dict[str, Any]) -> None:
    refill(wrapper.obs_queue, state["frames"])


def _view_frames(wrapper: Any, last: Transition) -> Transition:
    space = wrapper.env.observation_space
    frames: Any = create_empty_array(space, n=wrapper.stack_size)
    return replace(last, obs=concatenate(space, wrapper.obs_queue, frames))


def _set_delayed(wrapper: Any, state: dict[str, Any]) -> None:
    refill(wrapper.observation_queue, state["delayed"])


def _set_buffer(wrapper: Any, state: dict[str, Any]) -> None:
    wrapper._obs_buffer[...] = state["buffer"]


_FUNCTION_OF_OBSERVATION = WrapperRule(view=_view_observation, recomputable=True)
_PURE = (
    "DiscretizeObservation",
    "DtypeObservation",
    "FilterObservation",
    "FlattenObservation",
    "GrayscaleObservation",
    "RescaleObservation",
    "ReshapeObservation",
    "ResizeObservation",
)

RULES = {
    **{f"gymnasium.wrappers.transform_observation:{n}": _FUNCTION_OF_OBSERVATION for n in _PURE},
    "gymnasium.wrappers.transform_observation:TransformObservation": WrapperRule(
        view=_view_observation,
        captured="nothing: the function has to be pure",
        note="a function that keeps something, or draws random numbers, is not captured",
    ),
    "gymnasium.wrappers.transform_observation:AddRenderObservation": WrapperRule(
        view=None,
        note="the image is not drawn again, since drawing may have effects",
    ),
    "gymnasium.wrappers.stateful_observation:TimeAwareObservation": WrapperRule(
        get=lambda wrapper: {"timesteps": wrapper.timesteps},
        set=_set_timesteps,
        view=_view_observation,
        recomputable=True,
        captured="the number of steps taken",
    ),
    "gymnasium.wrappers.stateful_observation:FrameStackObservation": WrapperRule(
        get=lambda wrapper: {"frames": list(wrapper.obs_queue)},
        set=_set_frames,
        view=_view_frames,
        recomputable=True,
        captured="the stacked observations",
    ),
    "gymnasium.wrappers.stateful_observation:DelayObservation": WrapperRule(
        get=lambda wrapper: {"delayed": list(wrapper.observation_queue)},
        set=_set_delayed,
        view=None,
        captured="the observations that are still to come",
    ),
    "gymnasium.wrappers.stateful_observation:MaxAndSkipObservation": WrapperRule(
        get=lambda wrapper: {"buffer": wrapper._obs_buffer},
        set=_set_buffer,
        view=None,
        captured="the last two observations",
    ),
}
