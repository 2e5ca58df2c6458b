"""The conformance suite as a pytest class, one test a check."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pytest
from gymnasium import spaces

from sandboxgym.conformance.check import Check
from sandboxgym.conformance.checks import CHECKS
from sandboxgym.conformance.lab import random_policy
from sandboxgym.conformance.report import CheckResult, ConformanceWarning
from sandboxgym.conformance.runner import DEFAULT_DEPTH, DEFAULT_SEEDS, Suite
from sandboxgym.conformance.source import AnyEnv, Source


class ForkableContract:
    """Derive a test class from it and say which environment to check.

    >>> class TestMyEnv(ForkableContract):
    ...     def make_env(self):
    ...         return gym.make("my/Env-v0")

    Attributes:
        depth: Length of the episodes that everything is compared with.
        seeds: Their seeds.
    """

    depth: ClassVar[int] = DEFAULT_DEPTH
    seeds: ClassVar[Sequence[int]] = DEFAULT_SEEDS
    _suite: ClassVar[Suite]

    def make_env(self) -> AnyEnv:
        """Make the environment to check."""
        raise NotImplementedError(f"{type(self).__name__} has to define make_env")

    def policy(
        self, obs: Any, info: dict[str, Any], space: spaces.Space[Any], rng: np.random.Generator
    ) -> Any:
        """Choose an action; override it where random ones lead nowhere."""
        return random_policy(obs, info, space, rng)

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
    def test_forkable(self, check: Check) -> None:
        """One check of the suite."""
        cls = type(self)
        if "_suite" not in cls.__dict__:  # all tests of a class share one
            source = Source.of(self.make_env)
            cls._suite = Suite(source, policy=self.policy, depth=self.depth, seeds=self.seeds)
        settle(cls._suite.result(check))


def settle(result: CheckResult) -> None:
    """Turn the outcome of a check into the outcome of the running test."""
    if result.status == "failed":
        pytest.fail(str(result), pytrace=False)
    if result.status == "not run":
        pytest.skip(result.message)
    if result.status == "warned":
        warnings.warn(str(result), ConformanceWarning, stacklevel=2)
