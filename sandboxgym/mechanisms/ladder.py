"""The mechanisms, best first: what each needs of an environment, and how it is put around one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from sandboxgym.core.env import ForkableEnv
from sandboxgym.core.errors import NotForkableError
from sandboxgym.core.front import Forkable
from sandboxgym.core.snapshot import Mechanism
from sandboxgym.mechanisms.attributes import Attributes
from sandboxgym.mechanisms.copying import CopyEnv, obstacle_to_copying
from sandboxgym.mechanisms.foreign import ForeignEnv
from sandboxgym.mechanisms.native import NativeEnv
from sandboxgym.mechanisms.replay import ReplayEnv
from sandboxgym.mechanisms.seats import around_the_box, at_the_base
from sandboxgym.mechanisms.state_api import StateApi, api_for
from sandboxgym.mechanisms.survey import Survey
from sandboxgym.mechanisms.twins import AnyEnv, Factory


class Rung(ABC):
    """One mechanism."""

    name: ClassVar[Mechanism]
    why: ClassVar[str]
    probed: ClassVar[bool] = True

    def needs_no_probe(self, env: AnyEnv, *, asked: bool) -> bool:
        """Whether it is exact by declaration, where it is asked for by name or even where not."""
        return asked

    @abstractmethod
    def obstacle(self, env: AnyEnv) -> str | None:
        """Why this very environment cannot be forked this way, as far as a look at it tells."""

    @abstractmethod
    def obstacle_in(self, survey: Survey, env: AnyEnv) -> str | None:
        """Why not, by what plain instances showed."""

    @abstractmethod
    def wrap(self, env: AnyEnv, factory: Factory | None, *, recipe_replays: bool) -> AnyEnv:
        """Put the mechanism around an environment, which belongs to the result."""


class Native(Rung):
    """The hooks of a `ForkableEnv`, a registered state API, or that of plain attributes."""

    name = "native"
    why = "its own state is captured as data"

    def needs_no_probe(self, env: AnyEnv, *, asked: bool) -> bool:
        """A `ForkableEnv` promises to be exact; a registered state API is trusted when asked."""
        return _has_hooks(env) or (asked and api_for(env.unwrapped) is not None)

    def obstacle(self, env: AnyEnv) -> str | None:
        """A wrapper without a rule, or what the state API says."""
        seat = at_the_base(env)
        try:
            refusal = None if _has_hooks(env) else _api(env).refuse(seat.inside)
        except NotForkableError as error:
            refusal = str(error)
        return refusal or seat.obstacle()

    def obstacle_in(self, survey: Survey, env: AnyEnv) -> str | None:
        """What it does beside its attributes, unless a state API was registered for it."""
        return None if api_for(env.unwrapped) is not None else survey.beside

    def wrap(self, env: AnyEnv, factory: Factory | None, *, recipe_replays: bool) -> AnyEnv:
        """At the base, below all wrappers."""
        if _has_hooks(env):
            return env if isinstance(env, ForkableEnv | Forkable) else Forkable(env)
        seat = at_the_base(env)
        return seat.install(NativeEnv(seat.inside, _api(env), factory))


def _has_hooks(env: AnyEnv) -> bool:
    return isinstance(env.unwrapped, ForkableEnv)


def _api(env: AnyEnv) -> StateApi:
    return api_for(env.unwrapped) or Attributes()


class _Box(Rung):
    """A mechanism that treats the environment and most of its wrappers as a black box."""

    kind: ClassVar[type[ForeignEnv]]

    def obstacle(self, env: AnyEnv) -> str | None:
        """A wrapper without a rule that has to stay outside."""
        return around_the_box(env).obstacle()

    def obstacle_in(self, survey: Survey, env: AnyEnv) -> str | None:
        """None: the probe will tell."""
        return None

    def wrap(self, env: AnyEnv, factory: Factory | None, *, recipe_replays: bool) -> AnyEnv:
        """Below the wrappers that have a clock or statistics."""
        seat = around_the_box(env)
        box = self.kind(seat.inside, seat.factory(factory))
        box.recipe_replays = recipe_replays
        return seat.install(box)


class Copy(_Box):
    """Deep copies."""

    name = "copy"
    why = "it is held as deep copies"
    kind = CopyEnv

    def needs_no_probe(self, env: AnyEnv, *, asked: bool) -> bool:
        """Never: it is trusted only after the probe."""
        return False

    def obstacle(self, env: AnyEnv) -> str | None:
        """A class whose copies are known to be none."""
        return obstacle_to_copying(env) or super().obstacle(env)

    def obstacle_in(self, survey: Survey, env: AnyEnv) -> str | None:
        """What it does beside its own objects."""
        return survey.beside


class Replay(_Box):
    """Doing again what was done."""

    name = "replay"
    why = "what was done is done again, and what comes out is verified"
    probed = False  # each restore is verified, and many would take long
    kind = ReplayEnv

    def obstacle_in(self, survey: Survey, env: AnyEnv) -> str | None:
        """Another episode by the same seed and actions."""
        return survey.drift and f"it does not repeat itself: {survey.drift}"


def rungs() -> list[Rung]:
    """All mechanisms, best first."""
    return [Native(), Copy(), Replay()]
