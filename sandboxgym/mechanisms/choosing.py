"""`forkable`: choose a mechanism for an environment, prove it, and put it there."""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias, TypeVar, get_args

import gymnasium as gym
import numpy as np

from sandboxgym.core import wrappers
from sandboxgym.core.digest import digest
from sandboxgym.core.errors import NotForkableError, StateEncodingError
from sandboxgym.mechanisms.choice import Choice, Rejection, account
from sandboxgym.mechanisms.ladder import Rung, rungs
from sandboxgym.mechanisms.probe import probe
from sandboxgym.mechanisms.survey import Survey, survey
from sandboxgym.mechanisms.twins import AnyEnv, Factory, build_twin

Asked: TypeAlias = Literal["auto", "native", "process", "copy", "replay"]
Outcome = TypeVar("Outcome")

MAX_REMEMBERED = 256


def forkable(env: AnyEnv, mechanism: Asked = "auto", *, factory: Factory | None = None) -> AnyEnv:
    """Make an environment forkable. The result has a `choice` that tells how, and why so.

    "auto" takes the first mechanism that survives a probe on scratch instances, best first:

    - "native": the environment's own state as data, by its own hooks (`ForkableEnv`) or by a
      registered `StateApi`.
    - "process": the environment lives in a worker process that is copied by `os.fork`.
    - "copy": `copy.deepcopy`.
    - "replay": the actions are taken again, and what comes out is verified.

    One that is asked for by name is taken without a probe where it is exact by declaration: that is
    all but "copy", and "native" of an environment that nothing was registered for.

    Args:
        env: Any Gymnasium environment, with any wrappers. It belongs to the result, which closes
            it, and which it may be replaced in by an equal one that lives elsewhere.
        mechanism: "auto", or the name of a mechanism.
        factory: Makes another such environment, wrappers included. Needed for environments that
            `gymnasium.make` did not build.

    Raises:
        NotForkableError: The mechanism that was asked for is not possible, or none is; the message
            has the reason for each.
        ValueError: There is no such mechanism.
    """
    if mechanism not in get_args(Asked):
        raise ValueError(f"mechanism {mechanism!r} is not one of {', '.join(get_args(Asked))}")
    with _global_generators_kept():
        return _Choosing(env, factory).choose(mechanism)


class _Choosing:
    """One environment for which a mechanism is chosen."""

    def __init__(self, env: AnyEnv, factory: Factory | None) -> None:
        self.env = env
        self.factory = factory
        self.name = str(env)
        self.rejected: list[Rejection] = []
        self._found: dict[str, Any] = {}

    def choose(self, mechanism: Asked) -> AnyEnv:
        """Take the first rung that nothing speaks against."""
        for rung in rungs():
            if mechanism not in ("auto", rung.name):
                continue
            reason = self._objection(rung, asked=mechanism == rung.name)
            if reason is None:
                return self._take(rung)
            self.rejected.append(Rejection(rung.name, reason))
        raise NotForkableError(
            "\n".join([f"{self.name} cannot be made forkable", *account(tuple(self.rejected))])
        )

    def _objection(self, rung: Rung, *, asked: bool) -> str | None:
        """What speaks against a rung, by a look at the environment, a survey, and a probe."""
        obstacle = rung.obstacle(self.env)
        if obstacle is not None or rung.needs_no_probe(self.env, asked=asked):
            return obstacle
        seen = self._survey()
        if seen.obstacle is not None:
            return f"it could not be probed: {seen.obstacle}" if rung.probed else None
        return rung.obstacle_in(seen, self.env) or (self._probe(rung) if rung.probed else None)

    def _take(self, rung: Rung) -> AnyEnv:
        replays = self._found["survey"].drift is None if "survey" in self._found else True
        result = rung.wrap(self.env, self.factory, recipe_replays=replays)
        base: Any = result.unwrapped
        rejected = tuple(self.rejected)
        base.choice = Choice(self.name, rung.name, rung.why, base.fidelity, rejected)
        return result

    def _survey(self) -> Survey:
        return self._once("survey", lambda: survey(self._make_scratch))

    def _probe(self, rung: Rung) -> str | None:
        replays = self._survey().drift is None

        def make() -> AnyEnv:
            scratch = self._make_scratch()
            try:
                return rung.wrap(scratch, self.factory, recipe_replays=replays)
            except BaseException:
                scratch.close()
                raise

        return self._once(rung.name, lambda: probe(make, self._survey()))

    def _make_scratch(self) -> AnyEnv:
        return build_twin(self.env, self.factory, windowless=True)

    def _once(self, what: str, find: Callable[[], Outcome]) -> Outcome:
        """Find something out, unless it is known of an equal environment."""
        key = (what, _identity(self.env, self.factory))
        if what not in self._found:
            found = _remembered[key] if key in _remembered else find()
            self._found[what] = found
            if key[1] is not None:
                _remember(key, found)
        outcome: Outcome = self._found[what]
        return outcome


_remembered: OrderedDict[Hashable, Any] = OrderedDict()


def _remember(key: Hashable, found: Any) -> None:
    _remembered[key] = found
    _remembered.move_to_end(key)
    if len(_remembered) > MAX_REMEMBERED:
        _remembered.popitem(last=False)


def _identity(env: AnyEnv, factory: Factory | None) -> Hashable | None:
    """What equal environments have in common, or None where that is not known for sure."""
    if env.spec is None and factory is None:
        return None
    kwargs = [env.unwrapped.spec.kwargs if env.unwrapped.spec is not None else {}]
    classes = [type(env.unwrapped)]
    while isinstance(env, gym.Wrapper):
        kwargs.append(wrappers.constructed_with(env))
        classes.append(type(env))
        env = env.env
    try:
        return (factory, tuple(classes), digest(kwargs))
    except StateEncodingError:  # an argument that is an object: no other is surely equal to it
        return None


@contextmanager
def _global_generators_kept() -> Iterator[None]:
    """Leave the global random generators as they were."""
    python, numpy = random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
