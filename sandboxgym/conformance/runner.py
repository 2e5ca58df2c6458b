"""Running the checks on one environment."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import gymnasium as gym

from sandboxgym.conformance.check import Check
from sandboxgym.conformance.checks import CHECKS
from sandboxgym.conformance.lab import Lab, Policy, random_policy
from sandboxgym.conformance.outcome import CheckFailedError, CheckNotRunError, CheckWarnedError
from sandboxgym.conformance.report import CheckResult, ConformanceReport
from sandboxgym.conformance.source import Factory, Source
from sandboxgym.core.errors import SandboxGymError

DEFAULT_DEPTH = 12
DEFAULT_SEEDS = (0, 1, 2)


def check_forkable(
    env_factory: str | Factory,
    *,
    policy: Policy | None = None,
    depth: int = DEFAULT_DEPTH,
    seeds: Sequence[int] = DEFAULT_SEEDS,
    kwargs: dict[str, Any] | None = None,
) -> ConformanceReport:
    """Find out whether an environment forks exactly.

    Args:
        env_factory: Makes the environment: a function, "module:factory", or a Gymnasium id. Checks
            that start other processes are not run for functions that those cannot import.
        policy: Chooses the actions, from observation, info, action space and a generator. None
            takes admissible commands where the info lists them, else samples the action space.
        depth: Length of the episodes that everything is compared with.
        seeds: Their seeds.
        kwargs: Arguments for the factory or for `gymnasium.make`.

    Returns:
        One result a check. Whatever the environment raises becomes a failure of that check.

    Raises:
        EnvironmentNotFoundError: No environment goes by this name.
        ValueError: There is no seed, or the depth is less than 1.
    """
    suite = Suite(Source.of(env_factory, kwargs), policy=policy, depth=depth, seeds=seeds)
    return suite.report([suite.result(check) for check in CHECKS])


class Suite:
    """The checks of one environment, each run when it is asked for, and once."""

    def __init__(
        self,
        source: Source,
        *,
        policy: Policy | None = None,
        depth: int = DEFAULT_DEPTH,
        seeds: Sequence[int] = DEFAULT_SEEDS,
    ) -> None:
        if depth < 1 or not seeds:
            raise ValueError(f"a check needs a seed and a depth >= 1; got {seeds} and {depth}")
        self._lab = Lab(source, policy or random_policy, depth, list(seeds))
        self._results: dict[str, CheckResult] = {}

    def result(self, check: Check) -> CheckResult:
        """The outcome of a check; what it needs is run first."""
        if check.number not in self._results:
            self._results[check.number] = self._run(check)
        return self._results[check.number]

    def report(self, results: list[CheckResult]) -> ConformanceReport:
        """A report of these results."""
        lab = self._lab
        return ConformanceReport(
            env=lab.source.name,
            mechanism=lab.mechanism,
            seeds=list(lab.seeds),
            depth=lab.depth,
            versions={**lab.versions, "gymnasium": gym.__version__},
            results=results,
        )

    def _run(self, check: Check) -> CheckResult:
        obstacle = self._obstacle(check)
        if obstacle is not None:
            reason = "failed" if obstacle.status == "failed" else "was not run"
            message = f"needs {obstacle.name}, which {reason}"
            return CheckResult(check.name, check.why, "not run", message)
        start = time.perf_counter()
        result = self._outcome(check)
        return replace(result, seconds=time.perf_counter() - start)

    def _obstacle(self, check: Check) -> CheckResult | None:
        """The check at the root of why this one cannot be run, if there is one."""
        for needed in (c for c in CHECKS if c.number in check.needs):
            result = self.result(needed)
            if result.status in ("failed", "not run"):
                return self._obstacle(needed) or result
        return None

    def _outcome(self, check: Check) -> CheckResult:
        """Run a check, then close what it made; the first thing to go wrong is the outcome."""
        self._lab.doing = None
        outcome = self._attempt(check, lambda: check.run(self._lab))
        closing = self._attempt(check, self._lab.tidy)
        return closing if outcome.status != "failed" and closing.status == "failed" else outcome

    def _attempt(self, check: Check, run: Callable[[], str | None]) -> CheckResult:
        result = CheckResult(check.name, check.why, "passed")
        try:
            return replace(result, message=run() or "")
        except CheckNotRunError as reason:
            return replace(result, status="not run", message=str(reason))
        except CheckWarnedError as doubt:
            return replace(result, status="warned", message=str(doubt))
        except CheckFailedError as fault:
            return self._failed(result, str(fault), fault)
        except Exception as error:  # noqa: BLE001 - whatever an environment raises is a finding
            failed = self._failed(result, f"{type(error).__name__}: {error}", None)
            return replace(failed, traceback=_last_frames(error))

    def _failed(
        self, result: CheckResult, message: str, fault: CheckFailedError | None
    ) -> CheckResult:
        """A failure with what reproduces it."""
        result = replace(result, status="failed", message=message)
        if fault is not None and fault.difference is not None:
            difference = fault.difference
            result = replace(
                result,
                path=difference.path or "(all)",
                expected=difference.left,
                found=difference.right,
            )
        episode = self._lab.doing
        if episode is not None:
            step = fault.step if fault is not None else None
            result = replace(result, seed=episode.seed, actions=episode.actions[:step])
        return result


def _last_frames(error: Exception) -> str | None:
    """Where an error came from; those of this package say in words what caused them."""
    if isinstance(error, SandboxGymError) and error.__cause__ is None:
        return None
    return "".join(traceback.format_exception(error, limit=-3))
