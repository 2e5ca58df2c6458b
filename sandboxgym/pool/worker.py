"""The program of a worker: it holds the environments of some lanes, and does what it is sent.

`LaneHost` does the work and knows nothing of processes or connections.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import cloudpickle
import gymnasium as gym
import numpy as np

from sandboxgym.core import forking, wrappers
from sandboxgym.core.errors import NotForkableError, ReproductionError, SnapshotNotFoundError
from sandboxgym.core.snapshot import Snapshot
from sandboxgym.core.stack import AnyEnv, Stack
from sandboxgym.mechanisms import forkable
from sandboxgym.mechanisms.process.failure import describe
from sandboxgym.pool.messages import (
    Introduction,
    decode,
    encode,
    envelope,
    opened,
    pack,
    seen_of,
    unpack,
)
from sandboxgym.pool.recovery import check_rebuilt

FLUSH_AFTER = 0.005
"""Seconds after which answers are sent, though others of the same message are still to come."""

Maker = Callable[[], AnyEnv]


class Channel(Protocol):
    """A connection to the owner of the pool."""

    def receive(self) -> bytes:
        """The next message; raises `EOFError` where the owner is gone."""

    def send(self, message: bytes) -> None:
        """Send a message."""


def serve(channel: Channel, makers: bytes) -> None:
    """Build the environments, introduce them, and do what comes until the owner is gone."""
    random.seed()
    np.random.seed()
    with contextlib.suppress(EOFError, ConnectionError):  # the owner is gone
        try:
            host = LaneHost(cloudpickle.loads(makers))
            hello = envelope([[0, None, True, host.introduction()]])
        except Exception as error:  # noqa: BLE001 - it is reported, whatever it is
            channel.send(envelope([[0, encode(describe(error)), False, None]]))
            return
        with contextlib.closing(host):
            channel.send(hello)
            while True:
                for answers in host.answer(channel.receive()):
                    channel.send(answers)


class LaneHost:
    """The environments of some lanes, and the snapshots that were taken here.

    Args:
        makers: What makes each lane's environment. Those that are made alike, by the same
            function, are twins of the first of them, and share what twins share.
    """

    def __init__(self, makers: Sequence[Maker]) -> None:
        self.places: list[Place] = []
        first: dict[int, Place] = {}
        try:
            for maker in makers:
                twin = first.get(id(maker))
                place = Place(_build(maker) if twin is None else _twin(twin.env, maker))
                self.places.append(place)
                first.setdefault(id(maker), place)
        except BaseException:
            self.close()
            raise
        self.kept: dict[int, Snapshot] = {}

    def introduction(self) -> bytes:
        """What the owner has to know of the environments: spaces, metadata, how they render."""
        shown = [
            Introduction(env.observation_space, env.action_space, env.metadata, env.render_mode)
            for env in (place.env for place in self.places)
        ]
        pickled: bytes = cloudpickle.dumps(shown)
        return pickled

    def answer(self, message: bytes) -> Iterator[bytes]:
        """Do all that a message asks for; yields messages with the answers."""
        answers: list[Any] = []
        flushed = time.monotonic()
        for number, place, acts in opened(message):
            answers.append(self.obey(number, place, acts))
            if time.monotonic() - flushed > FLUSH_AFTER:
                yield envelope(answers)
                answers, flushed = [], time.monotonic()
        if answers:
            yield envelope(answers)

    def obey(self, number: int, place: int | None, acts: Sequence[bytes]) -> list[Any]:
        """Do the acts of one order, and say how that went."""
        here = None if place is None else self.places[place]
        try:
            result = None
            for one in acts:
                name, *args = decode(one)
                result = self.do(here, name, args)
        except Exception as error:  # noqa: BLE001 - it is raised again in the owner
            return [number, encode(describe(error)), here is None or here.alive, None]
        return [number, None, here is None or here.alive, result]

    def do(self, place: Place | None, name: str, args: list[Any]) -> Any:
        """Do one act, with a lane or with the snapshots that are kept here."""
        if name == "forget":
            for key in args[0]:
                self.kept.pop(key, None)
            return None
        if name == "put":
            key, blob = args
            self.kept[key] = unpack(blob)
            return None
        if name == "fetch":
            return pack(self.snapshot(args[0]))
        assert place is not None
        if name == "keep":
            snapshot = self.kept[args[0]] = forking.snapshot(place.env)
            return seen_of(snapshot.last)
        if name == "restore":
            key, seed = args
            return place.restore(self.snapshot(key), seed)
        return getattr(place, name)(*args)

    def snapshot(self, key: int) -> Snapshot:
        """A snapshot that is kept here."""
        if key not in self.kept:
            raise SnapshotNotFoundError(
                f"the worker does not hold snapshot {key}; what should have brought it here failed"
            )
        return self.kept[key]

    def close(self) -> None:
        """Close all environments, those after one that raises too."""
        with contextlib.ExitStack() as closing:
            for place in self.places:
                closing.callback(place.env.close)


class Place:
    """The environment of one lane. Each method is an act by that name.

    Attributes:
        seen: What it returned last, encoded.
    """

    def __init__(self, env: AnyEnv) -> None:
        self.env = env
        self.seen = b""
        self._stack = Stack.of(env)
        for layer in self._stack.layers:
            wrappers.rule_for(layer)  # raises where there is none, before anything is played
        self._used = False

    @property
    def alive(self) -> bool:
        """Whether it is in an episode that can go on."""
        return self._stack.base._record is not None

    def begin(self, seed: int, options: dict[str, Any] | None) -> Any:
        """A seeded reset."""
        return self.reset(options, seed)

    def reset(self, options: dict[str, Any] | None, seed: int | None = None) -> Any:
        """Start an episode; what was seen, and where that depends on the past, its recipe."""
        obs, info = self.env.reset(seed=seed, options=options)
        self.seen = encode([obs, 0.0, False, False, info])
        return [self.seen, self._start(seed)]

    def step(self, action: Any, autoreset: bool = False) -> Any:
        """Take an action: what it showed; of an episode that begins, its recipe and first view."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        if not (autoreset and (terminated or truncated)):
            self.seen = encode([obs, reward, bool(terminated), bool(truncated), info])
            return [self.seen, None, None]
        ended = {"final_info": info, "final_obs": obs}
        obs, info = self.env.reset()
        shown = encode([obs, reward, bool(terminated), bool(truncated), {**ended, **info}])
        self.seen = encode([obs, 0.0, False, False, info])
        return [shown, self._start(None), self.seen]

    def restore(self, snapshot: Snapshot, seed: int | None) -> Any:
        """Return to a snapshot that is kept here."""
        forking.restore(self.env, snapshot, seed=seed, rewind_statistics=True)
        self._used = True
        return None

    def load(self, blob: bytes) -> None:
        """Return to a snapshot that comes as bytes."""
        snapshot = unpack(blob)
        self.restore(snapshot, None)
        self.seen = seen_of(snapshot.last)

    def reseed(self, seed: int) -> None:
        """New randomness, as a restore with a seed brings it."""
        forking.reseed(self.env, seed)

    def rebuild(self, path: list[bytes], seen: bytes) -> None:
        """Bring a fresh environment to where a lost one was, or nowhere."""
        try:
            for one in path:
                name, *args = decode(one)
                getattr(self, name)(*args)
            check_rebuilt(seen, self.seen)
        except BaseException:
            self._stack.base._record = None  # there is no episode to go on with
            raise

    def call(self, name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Call a method, or read an attribute."""
        found = self.env.get_wrapper_attr(name)
        return encode(found(*args, **kwargs) if callable(found) else found)

    def set(self, name: str, value: Any) -> None:
        """Set an attribute."""
        self.env.set_wrapper_attr(name, value)

    def _start(self, seed: int | None) -> bytes | None:
        """The recipe of a reset that depends on more than its seed, as bytes."""
        first, self._used = not self._used, True
        if seed is not None and (first or not self._gathers()):
            return None
        return pack(forking.recipe_of(self.env))

    def _gathers(self) -> bool:
        """Whether a wrapper keeps something from one episode to the next."""
        return any(wrappers.capture(layer).statistics for layer in self._stack.layers)


def _build(maker: Maker) -> AnyEnv:
    env = maker()
    if not isinstance(env, gym.Env):
        raise NotForkableError(f"what makes a lane returned a {type(env).__name__}, no environment")
    try:
        Stack.of(env)
    except NotForkableError:
        return forkable(env, factory=maker)
    return env


def _twin(env: AnyEnv, maker: Maker) -> AnyEnv:
    """Another environment like `env`; the two can take up each other's snapshots at once."""
    try:
        twin: AnyEnv = Stack.of(env).reproduce()
    except ReproductionError:
        return _build(maker)
    return twin
