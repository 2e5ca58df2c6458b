"""What can be done: the actions to choose from, and typed text read as an action."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from sandboxgym.cli.play.timeline import PlayError

AnySpace = gym.Space[Any]

ADMISSIBLE = ("admissible_commands", "valid_actions", "valid", "validActions")
MOST_LISTED = 200


@dataclass(frozen=True)
class Choice:
    """An action to choose, and how it is spelled."""

    label: str
    action: Any


class Palette:
    """The actions of one space.

    Args:
        space: The action space. It is copied: its generator belongs to the environment.
        meanings: What the actions of a `Discrete` space are called, where the environment says so.
    """

    def __init__(self, space: AnySpace, meanings: Sequence[str] | None = None) -> None:
        self.space = copy.deepcopy(space)
        self.space.seed(0)
        self.meanings = meanings

    @property
    def free(self) -> bool:
        """Whether any text is an action."""
        return isinstance(self.space, spaces.Text)

    def choices(self, info: Mapping[str, Any]) -> list[Choice]:
        """The actions to choose from at a moment with this info.

        The commands that the info lists; all values of a small `Discrete` space that
        `info["action_mask"]` does not forbid; for other spaces their ends and a random sample.
        """
        if isinstance(self.space, spaces.Text):
            listed = [info[name] for name in ADMISSIBLE if info.get(name)]
            return [Choice(str(command), command) for command in (listed[0] if listed else [])]
        if isinstance(self.space, spaces.Discrete) and self.space.n <= MOST_LISTED:
            values = range(int(self.space.start), int(self.space.start + self.space.n))
            mask = info.get("action_mask")
            allowed = np.ones(len(values)) if mask is None else np.asarray(mask).ravel()
            return [
                Choice(self.spell(value), self.space.dtype.type(value))
                for value, possible in zip(values, allowed, strict=False)
                if possible
            ]
        return [*self._ends(), *self._sample()]

    def parse(self, text: str) -> Any:
        """Read an action that was typed.

        Raises:
            PlayError: The text is no action of this space; says what is.
        """
        if isinstance(self.space, spaces.Text):
            return text
        try:
            action = _read(self.space, text)
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise PlayError(
                f"{text!r} cannot be read ({error}): type {expected(self.space)}"
            ) from error
        if not self.space.contains(action):
            raise PlayError(f"{text!r} is no action here: type {expected(self.space)}")
        return action

    def spell(self, action: Any) -> str:
        """An action as one line of text."""
        if isinstance(self.space, spaces.Discrete) and self.meanings is not None:
            index = int(action) - int(self.space.start)
            if 0 <= index < len(self.meanings):
                return f"{action} {self.meanings[index]}"
        return spell(action)

    def _ends(self) -> list[Choice]:
        if not isinstance(self.space, spaces.Box):
            return []
        ends = {"zeros": np.zeros(self.space.shape, self.space.dtype)}
        ends |= {"lowest": self.space.low, "highest": self.space.high}
        return [
            Choice(name, value.copy())
            for name, value in ends.items()
            if np.isfinite(value).all() and self.space.contains(value)
        ]

    def _sample(self) -> list[Choice]:
        try:
            action = self.space.sample()
        except NotImplementedError:
            return []
        return [Choice(f"random: {spell(action)}", action)]


def expected(space: AnySpace) -> str:
    """What to type for an action of this space."""
    if isinstance(space, spaces.Text):
        return "a command"
    if isinstance(space, spaces.Discrete):
        return f"a whole number from {space.start} to {space.start + space.n - 1}"
    if isinstance(space, spaces.MultiDiscrete):
        ranges = [
            f"{a}-{a + n - 1}" for a, n in zip(space.start.flat, space.nvec.flat, strict=True)
        ]
        return f"{space.nvec.size} whole numbers, out of {' '.join(ranges)}"
    if isinstance(space, spaces.MultiBinary):
        return f"{int(np.prod(space.shape))} numbers, each 0 or 1"
    if isinstance(space, spaces.Box):
        low, high = float(space.low.min()), float(space.high.max())
        return f"{int(np.prod(space.shape))} numbers from {low:g} to {high:g}"
    return "it as JSON, arrays as lists, or choose from the list"


def spell(action: Any) -> str:
    """An action as one line of text."""
    if isinstance(action, np.ndarray):
        return " ".join(f"{value:.3g}" for value in action.ravel().tolist())
    if isinstance(action, np.generic):
        return str(action.item())
    if isinstance(action, dict):
        return "  ".join(f"{key}: {spell(value)}" for key, value in action.items())
    if isinstance(action, tuple):
        return "  ".join(map(spell, action))
    return str(action)


def _read(space: AnySpace, text: str) -> Any:
    if isinstance(space, spaces.Discrete):
        return space.dtype.type(int(text.split()[0] if text.split() else text))
    if isinstance(space, spaces.Box | spaces.MultiDiscrete | spaces.MultiBinary):
        return _array(space, text.replace(",", " ").strip(" \t[]()").split())
    return _from_json(space, json.loads(text))


def _from_json(space: AnySpace, data: Any) -> Any:
    if isinstance(space, spaces.Dict):
        return {name: _from_json(inner, data[name]) for name, inner in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_from_json(a, b) for a, b in zip(space.spaces, data, strict=True))
    if isinstance(space, spaces.Discrete):
        return space.dtype.type(data)
    if isinstance(space, spaces.Box | spaces.MultiDiscrete | spaces.MultiBinary):
        return _array(space, np.asarray(data).ravel().tolist())
    if isinstance(space, spaces.Text):
        return data
    raise ValueError(f"a {type(space).__name__} cannot be typed")


def _array(space: AnySpace, values: Sequence[Any]) -> Any:
    assert space.shape is not None
    wanted = int(np.prod(space.shape))
    if len(values) != wanted:
        raise ValueError(f"{len(values)} numbers instead of {wanted}")
    whole = space.dtype is not None and np.issubdtype(space.dtype, np.integer)
    numbers = [int(value) if whole else float(value) for value in values]
    return np.array(numbers, space.dtype).reshape(space.shape)
