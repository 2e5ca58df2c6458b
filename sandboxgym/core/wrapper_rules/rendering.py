"""Rules of the wrappers around `render`."""

from __future__ import annotations

from typing import Any

from sandboxgym.core.errors import UncapturedStateError
from sandboxgym.core.wrapper_rules.rule import WrapperRule


def _set_frames(wrapper: Any, state: dict[str, Any]) -> None:
    wrapper.frame_list = state["frames"]


def _refuse_video(wrapper: Any) -> dict[str, Any]:
    raise UncapturedStateError(
        "RecordVideo writes films of what happened, which no restore can take back: leave it out "
        "of the environment that is captured, and film an episode afterwards by playing the "
        "actions of snapshot.recipe in a second environment under RecordVideo"
    )


_NOISE = WrapperRule(
    recomputable=True,
    note="it draws from the environment's generator, which the recipe notes",
)

RULES = {
    "gymnasium.wrappers.rendering:AddWhiteNoise": _NOISE,
    "gymnasium.wrappers.rendering:ObstructView": _NOISE,
    "gymnasium.wrappers.rendering:RenderCollection": WrapperRule(
        get=lambda wrapper: {"frames": list(wrapper.frame_list)},
        set=_set_frames,
        recomputable=True,
        captured="the collected frames",
    ),
    "gymnasium.wrappers.rendering:HumanRendering": WrapperRule(
        recomputable=True,
        captured="nothing: a window shows an episode and decides nothing in it",
        note="the window shows a restored state with the next step",
    ),
    "gymnasium.wrappers.rendering:RecordVideo": WrapperRule(
        get=_refuse_video,
        captured="refused: a film cannot be rewound",
        note="film an episode afterwards, by playing the actions of its recipe",
    ),
}
