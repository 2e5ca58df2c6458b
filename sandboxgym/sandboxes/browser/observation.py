"""What an agent sees, and the spaces that contain it. Most names are BrowserGym's."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from gymnasium import spaces

from sandboxgym.core.errors import MissingDependencyError
from sandboxgym.core.spaces import AnyText
from sandboxgym.sandboxes.browser.actions import MAX_ACTION
from sandboxgym.sandboxes.browser.axtree import MAX_TEXT

Observation: TypeAlias = dict[str, Any]

_MAX_URL = 1_000_000  # a data: URL may be long
_SAMPLED_BIDS = 40


class ActionTexts(AnyText):
    """Actions as text; a text that is no action is answered by an error in the observation.

    Samples are actions of the grammar, on elements with small ids.
    """

    def __init__(self, seed: int | None = None) -> None:
        super().__init__(MAX_ACTION, seed=seed)

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Some action that is often possible."""
        draw = self.np_random
        bid = str(draw.integers(1, _SAMPLED_BIDS + 1))
        kinds = (
            f"click('{bid}')",
            f"click('{bid}')",
            f"click('{bid}')",
            f"fill('{bid}', 'text {draw.integers(100)}')",
            f"scroll(0, {draw.integers(-300, 301)})",
            f"mouse_click({draw.integers(600)}, {draw.integers(400)})",
            "keyboard_press('Tab')",
            "go_back()",
            "noop(100)",
        )
        return kinds[int(draw.integers(len(kinds)))]


def observation_space(*, screenshot: bool, width: int, height: int) -> spaces.Dict:
    """What a browser environment shows.

    Args:
        screenshot: Whether there is a picture in it.
        width: Of the picture.
        height: Of the picture.
    """
    texts = spaces.Sequence(AnyText(_MAX_URL))
    parts: dict[str, spaces.Space[Any]] = {
        "goal": AnyText(_MAX_URL),
        "url": AnyText(_MAX_URL),
        "title": AnyText(_MAX_URL),
        "axtree": AnyText(MAX_TEXT),
        "open_pages_urls": texts,
        "open_pages_titles": spaces.Sequence(AnyText(_MAX_URL)),
        "active_page_index": spaces.Discrete(1000),
        "dialogs": spaces.Sequence(AnyText(_MAX_URL)),
        "refused": spaces.Sequence(AnyText(_MAX_URL)),
        "chat_messages": spaces.Sequence(AnyText(MAX_ACTION)),
        "last_action_error": AnyText(_MAX_URL),
    }
    if screenshot:
        parts["screenshot"] = spaces.Box(0, 255, (height, width, 3), np.uint8)
    return spaces.Dict(parts)


def cut(texts: Sequence[str]) -> tuple[str, ...]:
    """Texts for a sequence of the space, none longer than it allows."""
    return tuple(text[:_MAX_URL] for text in texts)


def pixels(png: bytes) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """A picture as an array of height, width and three colours.

    Raises:
        MissingDependencyError: Pillow is not installed.
    """
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingDependencyError(
            'screenshots as arrays need Pillow: pip install "sandboxgym[browser]"'
        ) from error
    with Image.open(io.BytesIO(png)) as image:
        return np.asarray(image.convert("RGB"))
