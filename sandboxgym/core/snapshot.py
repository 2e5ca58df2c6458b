r"""`Snapshot`: one moment of an environment as data, and its file format.

A snapshot is a recipe (what was done since `reset`) plus an accelerator (the captured state). With
the state, restoring is immediate; without it, the recipe is replayed and the digest decides whether
the result may be used.

File layout, all integers big-endian::

    8 bytes  magic  b"SGSNAP\r\n"
    2 bytes  format version
    8 bytes  length of the body, decompressed
    8 bytes  length of the body, compressed
    16 bytes BLAKE2b-128 of the compressed body
    ...      the body: one zstd frame (RFC 8878) of `sandboxgym.core.codec` bytes
"""

from __future__ import annotations

import hashlib
import os
import struct
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

import zstandard

from sandboxgym.core import codec
from sandboxgym.core.digest import Difference, differences, digest
from sandboxgym.core.errors import (
    SnapshotCorruptError,
    SnapshotVersionError,
    StateEncodingError,
)
from sandboxgym.core.tensors import plain

FORMAT_VERSION = 1
DEFAULT_MAX_BYTES = 64 * 2**20

_MAGIC = b"SGSNAP\r\n"
_HEADER = struct.Struct(">8sHQQ16s")
_MAX_WINDOW = 2**27

Mechanism = Literal["native", "process", "copy", "replay"]


@dataclass(frozen=True)
class Fidelity:
    """What a snapshot captures, and how well.

    Attributes:
        scope: What is captured, out of "memory", "filesystem", "shell", "processes", "server",
            "dom", "network".
        mechanism: How the state is captured and put back.
        portable: Whether a snapshot can be restored in another process and on another host.
        exact: True where a restored continuation equals the original one; False is best effort.
        cost: How the cost of a restore grows: "constant", or "linear in depth" for a replay.
    """

    scope: frozenset[str] = frozenset({"memory"})
    mechanism: Mechanism = "native"
    portable: bool = True
    exact: bool = True
    cost: Literal["constant", "linear in depth"] = "constant"


@dataclass(frozen=True)
class SandboxSpec:
    """Which environment: its Gymnasium id (or "module:Class") and its constructor's arguments."""

    id: str
    kwargs: dict[str, Any]


@dataclass(frozen=True)
class Recipe:
    """What brings a fresh environment to the moment of the snapshot.

    Attributes:
        seed: The seed given to `reset`, or None.
        options: The options given to `reset`, or None.
        rng: State of the environment's generator just before an unseeded reset; None if seeded.
        actions: All actions since the reset.
        reseeds: Pairs (number of actions taken, seed) of restores that were given a new seed.
        moved: Triples (number of actions taken, index, state) for generators that something outside
            of the environment moved (a wrapper that draws from it, say) and that it then drew from.
            The index is that of `sandboxgym.core.rng.states`; -1 actions is before the reset.
    """

    seed: int | None
    options: dict[str, Any] | None
    rng: dict[str, Any] | None = None
    actions: tuple[Any, ...] = ()
    reseeds: tuple[tuple[int, int], ...] = ()
    moved: tuple[tuple[int, int, dict[str, Any]], ...] = ()


@dataclass(frozen=True)
class Transition:
    """What the environment last returned; after a reset the reward is 0 and both flags False."""

    obs: Any
    reward: Any
    terminated: bool
    truncated: bool
    info: dict[str, Any]

    @property
    def ended(self) -> bool:
        """Whether the episode is over."""
        return bool(self.terminated or self.truncated)

    def copy(self) -> Transition:
        """A copy as plain data, that shares nothing mutable with this one."""
        return Transition(
            plain(self.obs, "observation"),
            plain(self.reward, "reward"),
            bool(self.terminated),
            bool(self.truncated),
            plain(self.info, "info"),
        )

    def as_dict(self) -> dict[str, Any]:
        """The fields by name, for comparisons and files."""
        return {
            "obs": self.obs,
            "reward": self.reward,
            "terminated": self.terminated,
            "truncated": self.truncated,
            "info": self.info,
        }


@dataclass(frozen=True)
class WrapperState:
    """One wrapper as it was at the moment of a snapshot.

    Attributes:
        name: Its class, as "module:Class".
        kwargs: The arguments it was constructed with, described as plain data.
        state: What its rule says its state is.
        clock: What follows the wall clock; not in the digest.
        rng: State of the generators of the spaces that are its own; {} where none was made yet.
        statistics: Running statistics over many episodes; not in the digest, and put back only if
            that is asked for.
        functions: Hashes of the functions among its arguments; not in the digest.
        shown: What it last returned, where only it could say; None where that is the snapshot's
            `last`, or follows from what the level below returned. Not in the digest.
    """

    name: str
    kwargs: dict[str, Any]
    state: dict[str, Any]
    clock: dict[str, Any]
    rng: dict[str, Any] = field(default_factory=dict)
    statistics: dict[str, Any] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)
    shown: Transition | None = None

    def deciding(self) -> list[Any]:
        """What decides the future of an episode, for digests and comparisons."""
        return [self.name, self.kwargs, self.state, self.rng]


@dataclass(frozen=True, eq=False)
class Snapshot:
    """One moment of an environment: data only, owned by nobody, restorable any number of times.

    Attributes:
        spec: The environment that it belongs to.
        versions: Versions of sandboxgym, of the environment's package and of its state layout.
        recipe: How to get here from `reset`.
        state: What the environment's `get_state` gave, or None after `drop_state`.
        last: Observation, reward, flags and info of this moment, as seen outside all wrappers.
        inner: The same as seen from the environment below all wrappers.
        wrappers: State of each wrapper, outermost first.
        rng: State of the random generators of the environment and of its spaces.
        parent: Digest of the snapshot that this episode was last restored from, or None.
        created_by: The mechanism that captured `state`.
        held: What `ForkableEnv.hold` gave: the state as it is kept alive in this process. Never in
            a file and never compared; None where data says it all.
        packed: What is held, as bytes for other processes (`held.pack()`, where `held` has such a
            method); filled when a snapshot is read. Not in the digest.
        loaded: Whether it was read from bytes; its restore is then always verified.
    """

    spec: SandboxSpec
    versions: dict[str, str]
    recipe: Recipe
    state: Any
    last: Transition
    inner: Transition
    wrappers: tuple[WrapperState, ...]
    rng: dict[str, Any]
    parent: str | None
    created_by: Mechanism
    held: Any = field(default=None, repr=False)
    packed: bytes | None = field(default=None, repr=False)
    loaded: bool = False
    _digest: str | None = field(default=None, repr=False)

    @property
    def step(self) -> int:
        """Number of actions since the reset."""
        return len(self.recipe.actions)

    @property
    def digest(self) -> str:
        """Canonical hash of everything that decides the future; equal digests, equal futures."""
        if self._digest is None:
            value = state_digest(self.spec, self.state, self.rng, self.wrappers)
            object.__setattr__(self, "_digest", value)
        assert self._digest is not None
        return self._digest

    def drop_state(self) -> Snapshot:
        """A copy that keeps the recipe alone; restoring it replays and checks the digest."""
        return replace(self, state=None, held=None, packed=None, _digest=self.digest)

    def diff(self, other: Snapshot, *, limit: int = 20) -> list[Difference]:
        """The first leaves, by path, at which two snapshots differ."""
        return differences(self._comparable(), other._comparable(), limit=limit)

    def _comparable(self) -> dict[str, Any]:
        return {
            "spec": {"id": self.spec.id, "kwargs": self.spec.kwargs},
            "state": self.state,
            "rng": self.rng,
            "wrappers": [w.deciding() for w in self.wrappers],
            "last": self.last.as_dict(),
            "recipe": _recipe_tree(self.recipe),
        }

    def to_bytes(self) -> bytes:
        """Encode to the file format.

        Raises:
            StateEncodingError: A part of the snapshot is not plain data, or it is so large that
                `from_bytes` would refuse it.
        """
        body = codec.encode(self.as_tree())
        codec.check_readable([body])
        packed = zstandard.ZstdCompressor(level=6).compress(body)
        check = hashlib.blake2b(packed, digest_size=16).digest()
        return _HEADER.pack(_MAGIC, FORMAT_VERSION, len(body), len(packed), check) + packed

    @classmethod
    def from_bytes(cls, data: bytes, *, max_bytes: int = DEFAULT_MAX_BYTES) -> Snapshot:
        """Decode what `to_bytes` made. Runs no code from the data.

        Args:
            data: The whole file.
            max_bytes: Refuse a snapshot whose decompressed body is larger.

        Raises:
            SnapshotCorruptError: Not an intact snapshot, or larger than `max_bytes`.
            SnapshotVersionError: Written in another version of the format.
        """
        return cls.from_tree(codec.decode(_body(data, max_bytes)))

    def as_tree(self) -> dict[str, Any]:
        """All that a file holds, as plain data that shares its parts with this snapshot."""
        return {
            "spec": {"id": self.spec.id, "kwargs": self.spec.kwargs},
            "versions": self.versions,
            "recipe": _recipe_tree(self.recipe),
            "state": self.state,
            "last": self.last.as_dict(),
            "inner": None if self.inner is self.last else self.inner.as_dict(),
            "wrappers": [_wrapper_tree(w) for w in self.wrappers],
            "rng": self.rng,
            "parent": self.parent,
            "created_by": self.created_by,
            "digest": self.digest,
            "packed": self.packed if self.packed is not None else _pack(self.held),
        }

    @classmethod
    def from_tree(cls, tree: Any) -> Snapshot:
        """Make a snapshot of what `as_tree` gave, and check it as `from_bytes` does.

        Raises:
            SnapshotCorruptError: A part is missing or of the wrong type, or the state is not the
                one that the digest names.
        """
        try:
            snapshot = _from_tree(tree)
        except (KeyError, TypeError, ValueError, AttributeError, StateEncodingError) as error:
            raise SnapshotCorruptError(
                f"the snapshot lacks a part or has one of the wrong type ({error!r})"
            ) from error
        if snapshot.created_by not in get_args(Mechanism):
            raise SnapshotCorruptError(f"there is no mechanism {snapshot.created_by!r}")
        if snapshot.state is not None:
            found = state_digest(snapshot.spec, snapshot.state, snapshot.rng, snapshot.wrappers)
            if found != snapshot.digest:
                raise SnapshotCorruptError(
                    f"the snapshot's content hashes to {found}, not to its digest {snapshot.digest}"
                )
        return snapshot

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the snapshot to a file, replacing it in one move."""
        target = Path(path)
        temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            temporary.write_bytes(self.to_bytes())
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, max_bytes: int = DEFAULT_MAX_BYTES) -> Snapshot:
        """Read a snapshot from a file; see `from_bytes` for what is refused."""
        with Path(path).open("rb") as file:
            data = file.read(max_bytes + _HEADER.size + 1)
        if len(data) > max_bytes + _HEADER.size:
            raise SnapshotCorruptError(_too_large(len(data), max_bytes, f"{path} has at least"))
        return cls.from_bytes(data, max_bytes=max_bytes)


def state_digest(
    spec: SandboxSpec, state: Any, rng: dict[str, Any], wrappers: tuple[WrapperState, ...]
) -> str:
    """Hash everything that decides the future of an environment."""
    parts = [w.deciding() for w in wrappers]
    return digest([spec.id, spec.kwargs, state, rng, parts])


def _body(data: bytes, max_bytes: int) -> bytes:
    """Check the header against the data, then decompress."""
    if len(data) < _HEADER.size or not data.startswith(_MAGIC):
        raise SnapshotCorruptError("these bytes are not a snapshot: the magic number is missing")
    _, version, raw_length, packed_length, check = _HEADER.unpack_from(data)
    if version != FORMAT_VERSION:
        raise SnapshotVersionError(
            f"the snapshot has format version {version}, this release reads {FORMAT_VERSION}: "
            "load it with the release that wrote it, or take it again"
        )
    packed = data[_HEADER.size :]
    if len(packed) != packed_length:
        raise SnapshotCorruptError(
            f"the snapshot's body has {len(packed)} bytes and should have {packed_length}: "
            "the file was cut short or something was added to it"
        )
    if raw_length > max_bytes:
        raise SnapshotCorruptError(_too_large(raw_length, max_bytes, "the snapshot declares"))
    if hashlib.blake2b(packed, digest_size=16).digest() != check:
        raise SnapshotCorruptError("the snapshot's checksum does not match: its bytes were changed")
    return _decompress(packed, raw_length)


def _decompress(packed: bytes, raw_length: int) -> bytes:
    try:
        frame = zstandard.get_frame_parameters(packed)
        if frame.content_size != raw_length:
            raise SnapshotCorruptError(
                f"the compressed body declares {frame.content_size} bytes, the header {raw_length}"
            )
        decompressor = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW)
        body: bytes = decompressor.decompress(packed, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise SnapshotCorruptError(
            f"the snapshot's body cannot be decompressed: {error}"
        ) from error
    return body


def _too_large(size: int, max_bytes: int, subject: str) -> str:
    return f"{subject} {size} bytes, over the limit of {max_bytes}: pass a larger max_bytes"


def _pack(held: Any) -> bytes | None:
    packed: bytes | None = held.pack() if hasattr(held, "pack") else None
    return packed


def _recipe_tree(recipe: Recipe) -> dict[str, Any]:
    return {
        "seed": recipe.seed,
        "options": recipe.options,
        "rng": recipe.rng,
        "actions": list(recipe.actions),
        "reseeds": [list(pair) for pair in recipe.reseeds],
        "moved": [list(move) for move in recipe.moved],
    }


def _from_tree(tree: Any) -> Snapshot:
    recipe = _typed(tree["recipe"], dict)
    last = _transition(tree["last"])
    return Snapshot(
        spec=SandboxSpec(_typed(tree["spec"]["id"], str), _typed(tree["spec"]["kwargs"], dict)),
        versions={_typed(k, str): _typed(v, str) for k, v in tree["versions"].items()},
        recipe=Recipe(
            seed=_typed(recipe["seed"], int, type(None)),
            options=_typed(recipe["options"], dict, type(None)),
            rng=_typed(recipe["rng"], dict, type(None)),
            actions=tuple(_typed(recipe["actions"], list)),
            reseeds=tuple((_typed(n, int), _typed(s, int)) for n, s in recipe["reseeds"]),
            moved=tuple(
                (_typed(n, int), _typed(i, int), _typed(s, dict)) for n, i, s in recipe["moved"]
            ),
        ),
        state=tree["state"],
        last=last,
        inner=last if tree["inner"] is None else _transition(tree["inner"]),
        wrappers=tuple(_wrapper(part) for part in tree["wrappers"]),
        rng=_typed(tree["rng"], dict),
        parent=_typed(tree["parent"], str, type(None)),
        created_by=_typed(tree["created_by"], str),
        packed=_typed(tree["packed"], bytes, type(None)),
        loaded=True,
        _digest=_typed(tree["digest"], str),
    )


def _wrapper_tree(wrapper: WrapperState) -> list[Any]:
    shown = None if wrapper.shown is None else wrapper.shown.as_dict()
    apart = [wrapper.clock, wrapper.statistics, wrapper.functions, shown]
    return [*wrapper.deciding(), *apart]


def _wrapper(tree: Any) -> WrapperState:
    name, kwargs, state, rng, clock, statistics, functions, shown = tree
    return WrapperState(
        name=_typed(name, str),
        kwargs=_typed(kwargs, dict),
        state=_typed(state, dict),
        clock=_typed(clock, dict),
        rng=_typed(rng, dict),
        statistics=_typed(statistics, dict),
        functions={_typed(k, str): _typed(v, str) for k, v in functions.items()},
        shown=None if shown is None else _transition(shown),
    )


def _transition(tree: Any) -> Transition:
    return Transition(
        obs=tree["obs"],
        reward=tree["reward"],
        terminated=_typed(tree["terminated"], bool),
        truncated=_typed(tree["truncated"], bool),
        info=_typed(tree["info"], dict),
    )


def _typed(value: Any, *kinds: type) -> Any:
    if type(value) not in kinds:
        raise TypeError(f"expected {' or '.join(k.__name__ for k in kinds)}, found {type(value)}")
    return value
