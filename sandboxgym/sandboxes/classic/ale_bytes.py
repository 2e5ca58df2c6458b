"""ALE's states as bytes: what can be read off them, and how their generator is exchanged.

Six numbers, the console with its length before it, two numbers. The console ends with the generator
of sticky actions, as text: 624 numbers and a position, with its length before it.
"""

from __future__ import annotations

import re
import struct
from typing import Any

import numpy as np

_CONSOLE_LENGTH = struct.calcsize("<6i")
_TAIL = struct.calcsize("<2i")
_GENERATOR = re.compile(rb"(?:\d+ ){624}\d+")
_VIDEO_CHIP = struct.pack("<i", 3) + b"TIA"
_LINES = len(_VIDEO_CHIP) + struct.calcsize("<5i")


def lines_drawn(state: bytes) -> tuple[int, int]:
    """How many lines the last finished frame had, and the last one, finished or not.

    They are the sixth and the seventh number of the video chip.
    """
    finished, last = struct.unpack_from("<2i", state, state.index(_VIDEO_CHIP) + _LINES)
    return finished, last


def frame_is_partial(state: bytes) -> bool:
    """Whether the console is in the middle of a frame."""
    finished, last = lines_drawn(state)
    return finished != last


def size_without_generators(state: bytes) -> int:
    """What is equal in all states of one game."""
    return len(_GENERATOR.sub(b"", state))


def generator_state(state: bytes) -> Any:
    """The generator of sticky actions, as numpy's `MT19937` takes it."""
    numbers = np.array(_generator(state).split(), dtype=np.uint32)
    inner = {"key": numbers[:-1], "pos": int(numbers[-1])}
    return {"bit_generator": "MT19937", "state": inner}


def with_generator(state: bytes, generator: np.random.MT19937) -> bytes:
    """The same state with another generator of sticky actions."""
    inner: Any = generator.state["state"]
    text = " ".join(map(str, [*inner["key"].tolist(), inner["pos"]])).encode()
    old = len(_generator(state))
    (length,) = struct.unpack_from("<i", state, _CONSOLE_LENGTH)
    return b"".join(
        (
            state[:_CONSOLE_LENGTH],
            struct.pack("<i", length + len(text) - old),
            state[_CONSOLE_LENGTH + 4 : -_TAIL - old - 4],
            struct.pack("<i", len(text)),
            text,
            state[-_TAIL:],
        )
    )


def _generator(state: bytes) -> bytes:
    start = state.rindex(b"\0", 0, len(state) - _TAIL) + 1
    return state[start:-_TAIL]
