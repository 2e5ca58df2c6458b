"""The rule of `AtariPreprocessing`."""

from __future__ import annotations

from typing import Any

from sandboxgym.core.wrapper_rules.rule import WrapperRule


def _get(wrapper: Any) -> dict[str, Any]:
    return {
        "screens": list(wrapper.obs_buffer),
        "lives": wrapper.lives,
        "game_over": wrapper.game_over,
    }


def _set(wrapper: Any, state: dict[str, Any]) -> None:
    for screen, saved in zip(wrapper.obs_buffer, state["screens"], strict=True):
        screen[...] = saved
    wrapper.lives = state["lives"]
    wrapper.game_over = state["game_over"]


RULES = {
    "gymnasium.wrappers.atari_preprocessing:AtariPreprocessing": WrapperRule(
        get=_get,
        set=_set,
        view=None,
        captured="the last two screens, the lives, whether the game is over",
        note="its no-ops after a reset draw from the environment's generator and are in the recipe",
    ),
}
