"""Random generators as plain data: of an environment and of its spaces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding

from sandboxgym.core.digest import first_difference
from sandboxgym.core.errors import SnapshotCorruptError

_BIT_GENERATORS = {
    cls.__name__: cls
    for cls in (
        np.random.PCG64,
        np.random.PCG64DXSM,
        np.random.MT19937,
        np.random.Philox,
        np.random.SFC64,
    )
}


def capture(env: gym.Env[Any, Any]) -> dict[str, Any]:
    """State of the generators of a base environment and of its two spaces, as plain data."""
    return {
        "np_random": generator_state(env._np_random),
        "np_random_seed": env._np_random_seed,
        "action_space": [generator_state(s._np_random) for s in _spaces(env.action_space)],
        "observation_space": [
            generator_state(s._np_random) for s in _spaces(env.observation_space)
        ],
    }


def apply(env: gym.Env[Any, Any], rng: dict[str, Any]) -> None:
    """Put back what `capture` returned."""
    env._np_random = generator_from(rng["np_random"], env._np_random)
    env._np_random_seed = rng["np_random_seed"]
    apply_spaces(env, rng)


def apply_spaces(env: gym.Env[Any, Any], rng: dict[str, Any]) -> None:
    """Put back the generators of the spaces alone."""
    for space, states in (
        (env.action_space, rng["action_space"]),
        (env.observation_space, rng["observation_space"]),
    ):
        for part, state in zip(_spaces(space), states, strict=True):
            part._np_random = generator_from(state, part._np_random)  # type: ignore[assignment]  # its annotation forgets None


def capture_own_spaces(wrapper: gym.Wrapper[Any, Any, Any, Any]) -> dict[str, Any]:
    """State of the generators of the spaces that a wrapper has of its own; {} where there is none.

    A space that the level below has too is captured there; a generator that was never used is made
    of entropy when it is, and has no state yet.
    """
    captured = {}
    for name, space in _own_spaces(wrapper):
        found = [generator_state(part._np_random) for part in _spaces(space)]
        if any(state is not None for state in found):
            captured[name] = found
    return captured


def apply_own_spaces(wrapper: gym.Wrapper[Any, Any, Any, Any], captured: dict[str, Any]) -> None:
    """Put back what `capture_own_spaces` returned."""
    for name, space in _own_spaces(wrapper):
        parts = list(_spaces(space))
        found = captured.get(name, [None] * len(parts))
        for part, state in zip(parts, found, strict=True):
            part._np_random = generator_from(state, part._np_random)  # type: ignore[assignment]  # its annotation forgets None


def states(env: gym.Env[Any, Any]) -> list[dict[str, Any] | None]:
    """State of each generator: the environment's, then those of its spaces, in a fixed order."""
    generators = [env._np_random, *[part._np_random for part in _parts(env)]]
    return [None if g is None else g.bit_generator.state for g in generators]  # type: ignore[misc]  # a dict


def move(env: gym.Env[Any, Any], index: int, state: dict[str, Any]) -> None:
    """Bring the generator at this place in `states` to a state."""
    if index == 0:
        env._np_random = generator_from(state, env._np_random)
        return
    parts = _parts(env)
    if not 0 < index <= len(parts):
        raise SnapshotCorruptError(f"the recipe moves generator {index} of {len(parts) + 1}")
    part = parts[index - 1]
    part._np_random = generator_from(state, part._np_random)  # type: ignore[assignment]  # its annotation forgets None


def same(left: dict[str, Any] | None, right: dict[str, Any] | None) -> bool:
    """Whether two generator states are equal; MT19937 and Philox keep theirs in arrays."""
    if left is right:
        return True
    if left is None or right is None or left["bit_generator"] != right["bit_generator"]:
        return False
    if left["bit_generator"] in ("PCG64", "PCG64DXSM"):
        return left == right
    return first_difference(left, right) is None


def reseed_generator(env: gym.Env[Any, Any], seed: int) -> None:
    """Start the generator of a base environment anew from `seed`.

    In place, so that parts of the environment that hold the generator go on sharing it.
    """
    anew, env._np_random_seed = seeding.np_random(seed)
    env._np_random = generator_from(generator_state(anew), env._np_random)


def generator_state(generator: np.random.Generator | None) -> dict[str, Any] | None:
    """The full state of a numpy generator, or None for one that was not made yet."""
    if generator is None:
        return None
    state: dict[str, Any] = dict(generator.bit_generator.state)
    return state


def generator_from(
    state: dict[str, Any] | None, current: np.random.Generator | None
) -> np.random.Generator | None:
    """Bring `current` to `state` in place, so that parts that share it keep sharing it.

    Where `current` is None or of another kind, the result is a new generator.
    """
    if state is None:
        return None
    name = state["bit_generator"]
    generator = current
    if generator is None or type(generator.bit_generator).__name__ != name:
        if name not in _BIT_GENERATORS:
            known = ", ".join(_BIT_GENERATORS)
            raise SnapshotCorruptError(f"the bit generator {name!r} is not one of {known}")
        generator = np.random.Generator(_BIT_GENERATORS[name](0))
    if not _in_range(state):
        raise SnapshotCorruptError(f"this is not a state of the bit generator {name}")
    generator.bit_generator.state = state
    return generator


def _in_range(state: dict[str, Any]) -> bool:
    """Whether numpy can take a state: it does not check positions in buffers, and would crash."""
    if state["bit_generator"] == "MT19937":
        return bool(0 <= state["state"]["pos"] <= 624)
    if state["bit_generator"] == "Philox":
        return bool(0 <= state["buffer_pos"] <= 4)
    return True


def _parts(env: gym.Env[Any, Any]) -> list[spaces.Space[Any]]:
    """All spaces of an environment; kept, since every step asks for them."""
    action_space = getattr(env, "action_space", None)  # an environment may do without, until
    observation_space = getattr(env, "observation_space", None)  # it is to be captured
    kept = env.__dict__.get("_parts_of_spaces")
    if kept is None or kept[0] is not action_space or kept[1] is not observation_space:
        parts = [p for s in (action_space, observation_space) if s is not None for p in _spaces(s)]
        kept = (action_space, observation_space, parts)
        env.__dict__["_parts_of_spaces"] = kept
    return kept[2]


def _own_spaces(
    wrapper: gym.Wrapper[Any, Any, Any, Any],
) -> Iterator[tuple[str, spaces.Space[Any]]]:
    for name in ("action_space", "observation_space"):
        space = getattr(wrapper, f"_{name}", None)
        if space is not None:
            yield name, space


def _spaces(space: spaces.Space[Any]) -> Iterator[spaces.Space[Any]]:
    """A space and all spaces inside it, in a fixed order."""
    yield space
    if isinstance(space, spaces.Dict):
        inner: list[Any] = list(space.spaces.values())
    elif isinstance(space, spaces.Tuple | spaces.OneOf):
        inner = list(space.spaces)
    elif isinstance(space, spaces.Sequence):
        inner = [space.feature_space]
    elif isinstance(space, spaces.Graph):
        inner = [s for s in (space.node_space, space.edge_space) if s is not None]
    else:
        return
    for part in inner:
        yield from _spaces(part)
