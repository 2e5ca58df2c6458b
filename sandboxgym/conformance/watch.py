"""When a bench has to be ended: it makes no progress, or takes more than it may."""

from __future__ import annotations

import os
import time

from sandboxgym.conformance import processes
from sandboxgym.conformance.check import Check
from sandboxgym.conformance.journal import Journal, Whereabouts
from sandboxgym.conformance.lab import MAKING
from sandboxgym.conformance.options import Options
from sandboxgym.conformance.report import CheckResult, Facts

MEGABYTE = 2**20


class Watch:
    """Watches one check. What stops it for the user's sake leaves it not run, a hang is a fault.

    Args:
        check: The check.
        options: What is allowed.
        journal: Where calls are written down, before and after.
        seconds: How long the check may take, or None.
    """

    def __init__(
        self, check: Check, options: Options, journal: Journal, seconds: float | None
    ) -> None:
        self._check = check
        self._options = options
        self._journal = journal
        self._start = self._progress = time.monotonic()
        self._seconds = seconds
        self._size = journal.size()

    def verdict(self) -> CheckResult | None:
        """The result of a check that has to be stopped now, or None."""
        return self._over_time() or self._over_memory() or self._silent()

    def died(self, how: str) -> CheckResult:
        """The result of a check whose process has ended by itself."""
        where = self._journal.whereabouts()
        doing = f"in {where.call}" if where else "between calls on the environment"
        return self._failed(f"the process of the environment {how}, {doing}", where)

    def facts(self) -> Facts:
        """What is known of the environment all the same."""
        where = self._journal.whereabouts()
        return Facts(made=where is None or where.call != MAKING)

    def _over_time(self) -> CheckResult | None:
        budget = self._options.time_budget
        taken = time.monotonic() - self._start
        if self._seconds is None or taken < self._seconds:
            return None
        return self._not_run(f"stopped after {taken:.1f} s: the time budget of {budget:g} s is up")

    def _over_memory(self) -> CheckResult | None:
        budget = self._options.memory_budget
        if budget is None:
            return None
        pids = [process.pid for process in processes.descendants(os.getpid())]
        if processes.memory_at_most(pids) <= budget * MEGABYTE:
            return None
        taken = processes.memory(pids) / MEGABYTE
        if taken <= budget:
            return None
        return self._not_run(
            f"stopped at {taken:.0f} MB: the memory budget is {budget:g} MB for {len(pids)} "
            f"process{'es' if len(pids) > 1 else ''}"
        )

    def _silent(self) -> CheckResult | None:
        size = self._journal.size()
        if size != self._size:
            self._size, self._progress = size, time.monotonic()
            return None
        if time.monotonic() - self._progress < self._options.call_timeout:
            return None
        where = self._journal.whereabouts()
        doing = where.call if where else "the check"
        return self._failed(
            f"{doing} did not return within {self._options.call_timeout:g} s", where
        )

    def _failed(self, message: str, where: Whereabouts | None) -> CheckResult:
        in_episode = where is not None and (where.seed is not None or where.actions)
        seed, actions = (where.seed, where.actions) if where and in_episode else (None, None)
        name, why = self._check.name, self._check.why
        return CheckResult(name, why, "failed", message, seed=seed, actions=actions)

    def _not_run(self, message: str) -> CheckResult:
        return CheckResult(self._check.name, self._check.why, "not run", message)
