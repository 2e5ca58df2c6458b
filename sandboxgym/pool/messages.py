"""What can be asked of a lane, and how it travels.

A message to a worker is a list of orders `[number, place, acts]`: the lane's place in that worker,
and what is to be done there, one act after the other. Its answer is a list of
`[number, error, alive, result]`, where the result is that of the last act. Orders are answered in
the order in which they came, as they are done; one message may hold many answers.

Each act, and whatever an environment returned, is encoded by itself: it is kept as bytes, so that
nobody can change it later, and a fault in it is that of one lane alone. On its way to the worker an
act may be a `Delivery`, and a result on its way back a `Parcel`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import gymnasium as gym
import msgspec

from sandboxgym.core import codec
from sandboxgym.core.errors import StateEncodingError
from sandboxgym.core.snapshot import Snapshot, Transition
from sandboxgym.core.tensors import plain, raised
from sandboxgym.pool.handles import Parcel, SnapshotHandle

_WITH_TENSORS = b"\xc1"
"""Stands before what needs more than decoding; no msgpack document begins with it."""

_envelope = msgspec.msgpack.Encoder()
_opening = msgspec.msgpack.Decoder()


class Introduction(NamedTuple):
    """What a worker says of a lane's environment when it has built it."""

    observation_space: gym.Space[Any]
    action_space: gym.Space[Any]
    metadata: dict[str, Any]
    render_mode: str | None


Stepped: TypeAlias = tuple[Any, Any, bool, bool, dict[str, Any]]
"""What a step returns: observation, reward, terminated, truncated, info."""


@dataclass(frozen=True, slots=True)
class Reset:
    """Start an episode. The result is `(obs, info)`."""

    seed: int | None = None
    options: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """Take an action. The result is what `step` of an environment returns.

    With `autoreset`, an episode that ends is followed by the next one at once: observation and info
    are those of the new one, and the info holds `final_obs` and `final_info` of the old one.
    """

    action: Any
    autoreset: bool = False


@dataclass(frozen=True, slots=True)
class Take:
    """Take a snapshot. The result is a `SnapshotHandle`."""


@dataclass(frozen=True, slots=True)
class Restore:
    """Return to the moment of a snapshot, with new randomness where a seed is given.

    The result is `(obs, info)`.
    """

    snapshot: SnapshotHandle | Snapshot
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """Call a method of the environment, or read an attribute. The result is what that returns.

    For looking at an environment: where a call changes it, a rebuilt lane does not know of that.
    """

    name: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class SetAttribute:
    """Set an attribute of the environment, for good. The result is None."""

    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class Delivery:
    """The act "put" of a snapshot whose bytes the owner does not have; the backend brings them.

    Where they are lost it does nothing, and the worker says that it does not hold the snapshot.
    """

    key: int
    parcel: Parcel


Command: TypeAlias = Reset | Step | Take | Restore | Call | SetAttribute


def act(name: str, *args: Any) -> bytes:
    """An act for a worker, as bytes.

    Raises:
        StateEncodingError: An argument is not plain data.
    """
    return encode([name, *args])


def encode(tree: Any) -> bytes:
    """Plain data as bytes; tensors of torch and jax become plain data on the way.

    Raises:
        StateEncodingError: It holds something else.
    """
    try:
        return codec.encode(tree)
    except StateEncodingError:
        return _WITH_TENSORS + codec.encode(plain(tree, "message"))


def decode(data: bytes) -> Any:
    """What `encode` was given, in a copy that belongs to the caller."""
    if data.startswith(_WITH_TENSORS):
        return raised(codec.decode_own(data[1:]))
    return codec.decode_own(data)


def envelope(message: list[Any]) -> bytes:
    """A whole message: lists of numbers, flags, and parts that are encoded already."""
    return _envelope.encode(message)


def opened(message: bytes) -> list[Any]:
    """The list that `envelope` was given."""
    orders: list[Any] = _opening.decode(message)
    return orders


def pack(snapshot: Snapshot) -> bytes:
    """A snapshot as bytes for another process of the pool."""
    return codec.encode(snapshot.as_tree())


def unpack(packed: bytes) -> Snapshot:
    """The snapshot that `pack` was given; restoring it is verified."""
    return Snapshot.from_tree(codec.decode_own(packed))


def seen_of(last: Transition) -> bytes:
    """What a snapshot's lane had seen last, encoded as what a step returns is."""
    return encode(raised([last.obs, last.reward, last.terminated, last.truncated, last.info]))


def first_view(seen: bytes) -> tuple[Any, dict[str, Any]]:
    """Observation and info out of what a lane has seen last."""
    obs, _, _, _, info = decode(seen)
    return obs, info


def stepped(seen: bytes) -> Stepped:
    """What a step returned."""
    obs, reward, terminated, truncated, info = decode(seen)
    return obs, reward, terminated, truncated, info
