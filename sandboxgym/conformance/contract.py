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
from sandboxgym.conformance.options import (
    DEFAULT_CALL_TIMEOUT,
    DEFAULT_DEPTH,
    DEFAULT_SEEDS,
    Options,
)
from sandboxgym.conformance.policies import random_policy
from sandboxgym.conformance.report import CheckResult, ConformanceWarning
from sandboxgym.conformance.runner import Suite
from sandboxgym.conformance.source import AnyEnv, Source


class ForkableContract:
    """Derive a test class from it and say which environment to check.

    >>> class TestMyEnv(ForkableContract):
    ...     def make_env(self):
    ...         return gym.make("my/Env-v0")

    Attributes:
        depth: Length of the episodes that everything is compared with.
        seeds: Their seeds.
        only: Numbers or names of the checks to run, with all that they build on. None is all.
        skip: Those not to run.
        time_budget: Seconds for all tests of the class together; what is left is skipped.
        memory_budget: Megabytes for the environment; a check in which it takes more is skipped.
        call_timeout: Seconds in which any one call on the environment has to return.
        isolated: Run the checks in a process of their own. Without, a debugger reaches them.
    """

    depth: ClassVar[int] = DEFAULT_DEPTH
    seeds: ClassVar[Sequence[int]] = DEFAULT_SEEDS
    only: ClassVar[Sequence[str] | None] = None
    skip: ClassVar[Sequence[str]] = ()
    time_budget: ClassVar[float | None] = None
    memory_budget: ClassVar[float | None] = None
    call_timeout: ClassVar[float] = DEFAULT_CALL_TIMEOUT
    isolated: ClassVar[bool] = True
    _suite: ClassVar[Suite | None] = None

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
        suite = self._shared_suite()
        if check not in suite.options.checks():
            pytest.skip("not among the checks to run")
        settle(suite.result(check))

    @classmethod
    def teardown_class(cls) -> None:
        """End the processes of the suite."""
        if cls._suite is not None:
            cls._suite.close()
            cls._suite = None

    def _shared_suite(self) -> Suite:
        """The suite of the class, made by its first test."""
        cls = type(self)
        if cls._suite is None:
            overridden = cls.policy is not ForkableContract.policy
            options = Options(
                seeds=self.seeds,
                depth=self.depth,
                policy=self.policy if overridden else None,
                only=self.only,
                skip=self.skip,
                time_budget=self.time_budget,
                memory_budget=self.memory_budget,
                call_timeout=self.call_timeout,
                isolated=self.isolated,
            )
            cls._suite = Suite(Source.of(self.make_env), options)
        return cls._suite


def settle(result: CheckResult) -> None:
    """Turn the outcome of a check into the outcome of the running test."""
    if result.status == "failed":
        pytest.fail(str(result), pytrace=False)
    if result.status == "not run":
        pytest.skip(result.message)
    if result.status == "warned":
        warnings.warn(str(result), ConformanceWarning, stacklevel=2)
