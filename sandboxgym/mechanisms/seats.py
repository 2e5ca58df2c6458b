"""Where in a stack of wrappers a mechanism goes, and putting it there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium as gym

from sandboxgym.core import wrappers
from sandboxgym.core.env import ForkableEnv
from sandboxgym.core.errors import UncapturedStateError, UnknownWrapperError
from sandboxgym.core.front import Forkable
from sandboxgym.core.wrapper_rules import WrapperRule
from sandboxgym.core.wrappers import AnyWrapper
from sandboxgym.mechanisms.twins import AnyEnv, Factory


@dataclass(frozen=True)
class Seat:
    """A place in a stack: the wrappers above it, outermost first, and what goes inside."""

    above: list[AnyWrapper]
    inside: AnyEnv

    def obstacle(self) -> str | None:
        """Why the wrappers above cannot be captured by their rules."""
        for layer in self.above:
            try:
                wrappers.capture(layer)
            except (UnknownWrapperError, UncapturedStateError) as error:
                return str(error)
        return None

    def factory(self, factory: Factory | None) -> Factory | None:
        """What makes the inside, given what makes the whole stack."""
        if factory is None or not self.above:
            return factory
        depth = len(self.above)

        def make_inside() -> AnyEnv:
            env = factory()
            for _ in range(depth):
                env = env.env  # type: ignore[attr-defined]  # as deep as the first was
            return env

        return make_inside

    def install(self, mechanism: ForkableEnv[Any, Any]) -> AnyEnv:
        """Put a mechanism here, and the contract's methods on the outside."""
        if not self.above:
            return mechanism
        self.above[-1].env = mechanism
        return Forkable(self.above[0])


def at_the_base(env: AnyEnv) -> Seat:
    """Below all wrappers, each of which then needs a rule."""
    above = []
    while isinstance(env, gym.Wrapper):
        above.append(env)
        env = env.env
    return Seat(above, env)


def around_the_box(env: AnyEnv) -> Seat:
    """Around as much as can be a black box: below wrappers with a clock or with statistics.

    What such a wrapper shows differs each time, or is not to be rewound; rules know of that.
    """
    bottom = at_the_base(env)
    depth = 0
    for number, layer in enumerate(bottom.above, start=1):
        if _is_told_apart_by_a_rule(layer):
            depth = number
    inside = bottom.above[depth] if depth < len(bottom.above) else bottom.inside
    return Seat(bottom.above[:depth], inside)


def _is_told_apart_by_a_rule(layer: AnyWrapper) -> bool:
    try:
        rule = wrappers.rule_for(layer)
    except UnknownWrapperError:
        return False
    return rule.get_clock is not WrapperRule.get_clock or rule.statistics is not None
