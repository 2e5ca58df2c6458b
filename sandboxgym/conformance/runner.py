"""Running the suite on one environment."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from types import TracebackType
from typing import Any

import gymnasium as gym

from sandboxgym.conformance.bench import run_check
from sandboxgym.conformance.check import Check
from sandboxgym.conformance.checks import BY_NUMBER
from sandboxgym.conformance.journal import Journal
from sandboxgym.conformance.lab import Lab
from sandboxgym.conformance.options import (
    DEFAULT_CALL_TIMEOUT,
    DEFAULT_DEPTH,
    DEFAULT_SEEDS,
    Options,
)
from sandboxgym.conformance.policies import Policy
from sandboxgym.conformance.report import CheckResult, ConformanceReport, Facts
from sandboxgym.conformance.reproduce import reproduction
from sandboxgym.conformance.source import Factory, Source
from sandboxgym.conformance.supervisor import Isolated, MakeLab


def check_forkable(
    env_factory: str | Factory,
    *,
    policy: Policy | str | None = None,
    depth: int = DEFAULT_DEPTH,
    seeds: Sequence[int] = DEFAULT_SEEDS,
    kwargs: dict[str, Any] | None = None,
    only: Iterable[str | int] | None = None,
    skip: Iterable[str | int] = (),
    time_budget: float | None = None,
    memory_budget: float | None = None,
    call_timeout: float = DEFAULT_CALL_TIMEOUT,
    isolated: bool = True,
) -> ConformanceReport:
    """Find out whether an environment forks exactly.

    Args:
        env_factory: Makes the environment: a function, "module:factory", or a Gymnasium id. Checks
            that start other interpreters are not run for functions that those cannot import.
        policy: Chooses the actions, from observation, info, action space and a generator; a
            function or "module:function". None takes admissible commands where the info lists them,
            else samples the action space.
        depth: Length of the episodes that everything is compared with.
        seeds: Their seeds.
        kwargs: Arguments for the factory or for `gymnasium.make`.
        only: Numbers or names of the checks to run, with all that they build on. None is all.
        skip: Those not to run.
        time_budget: Seconds for the whole suite. What has not ended by then is not run.
        memory_budget: Megabytes for all processes of the environment together. A check in which
            they take more is stopped, and not run.
        call_timeout: Seconds in which any one call on the environment has to return; one that does
            not is a failure.
        isolated: Run the checks in a process of their own, which may hang or die, and which what
            happens there does not touch. Without, a debugger reaches them, but there is no limit
            on calls and memory. It needs `os.fork`; where there is none, it makes no difference.

    Returns:
        One result a check. Whatever the environment raises becomes a failure of that check.

    Raises:
        EnvironmentNotFoundError: No environment goes by this name.
        PolicyNotFoundError: No policy does.
        OptionError: A number is out of range, or there is no such check.
    """
    options = Options(
        seeds=seeds,
        depth=depth,
        policy=policy,
        only=only,
        skip=skip,
        time_budget=time_budget,
        memory_budget=memory_budget,
        call_timeout=call_timeout,
        isolated=isolated,
    )
    with Suite(Source.of(env_factory, kwargs), options) as suite:
        return suite.report([suite.result(check) for check in options.checks()])


class Suite:
    """The checks of one environment, each run when it is asked for, and once.

    Close it, or use it as a context: it may have started processes.
    """

    def __init__(self, source: Source, options: Options | None = None) -> None:
        self.source = source
        self.options = options or Options()
        self._results: dict[str, CheckResult] = {}
        self._facts = Facts()
        self._started: float | None = None
        self._began = ""
        isolated = self.options.isolated and hasattr(os, "fork")
        self._runner = (
            Isolated(self._make_lab, self.options) if isolated else InProcess(self._make_lab)
        )

    def __enter__(self) -> Suite:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the processes that were started."""
        self._runner.close()

    def result(self, check: Check) -> CheckResult:
        """The outcome of a check; what it needs is run first."""
        if self._started is None:
            self._started = time.monotonic()
            self._began = datetime.now(timezone.utc).isoformat(timespec="seconds")
        if check.number not in self._results:
            self._results[check.number] = self._run(check)
        return self._results[check.number]

    @property
    def made(self) -> bool:
        """Whether the environment could be made at all, as far as is known."""
        return self._facts.made

    def report(self, results: list[CheckResult]) -> ConformanceReport:
        """A report of these results."""
        return ConformanceReport(
            env=self.source.name,
            mechanism=self._facts.mechanism,
            seeds=list(self.options.seeds),
            depth=self.options.depth,
            versions={**self._facts.versions, "gymnasium": gym.__version__},
            results=results,
            started=self._began,
            choice=self._facts.choice,
        )

    def _make_lab(self, journal: Journal) -> Lab:
        options = self.options
        return Lab(self.source, options.player, options.depth, options.seeds, journal)

    def _run(self, check: Check) -> CheckResult:
        reason = self._why_not(check)
        if reason is not None:
            return CheckResult(check.name, check.why, "not run", reason)
        result, facts = self._runner.run(check, self._seconds_left())
        if facts.mechanism or not self._facts.mechanism:
            self._facts = facts
        if result.status == "failed":
            return replace(result, reproduce=reproduction(self.source, self.options, result))
        return result

    def _why_not(self, check: Check) -> str | None:
        """Why a check is not run, if it is not."""
        if check.number in self.options.skip:
            return "skipped, as asked for"
        obstacle = self._obstacle(check)
        if obstacle is not None:
            reason = "failed" if obstacle.status == "failed" else "was not run"
            return f"needs {obstacle.name}, which {reason}"
        left = self._seconds_left()
        if left is not None and left <= 0:
            return f"the time budget of {self.options.time_budget:g} s is up"
        return None

    def _obstacle(self, check: Check) -> CheckResult | None:
        """The check at the root of why this one cannot be run, if there is one."""
        for number in check.needs:
            if number in self.options.skip:
                continue
            needed = BY_NUMBER[number]
            result = self.result(needed)
            if result.status in ("failed", "not run"):
                return self._obstacle(needed) or result
        return None

    def _seconds_left(self) -> float | None:
        if self.options.time_budget is None or self._started is None:
            return None
        return self._started + self.options.time_budget - time.monotonic()


class InProcess:
    """Runs checks in this process, where a debugger reaches them and nothing watches over them."""

    def __init__(self, make_lab: MakeLab) -> None:
        self._lab = make_lab(Journal())

    def run(self, check: Check, seconds: float | None) -> tuple[CheckResult, Facts]:
        """Run a check to its end."""
        return run_check(self._lab, check), self._lab.facts

    def close(self) -> None:
        """Nothing was started."""
