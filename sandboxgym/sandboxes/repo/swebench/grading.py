"""What test results are worth for a task.

A test that should pass and was not heard of has failed. A test that was to be fixed and is skipped
is not fixed; one that was to be kept and is skipped is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from sandboxgym.sandboxes.repo.swebench.names import is_test, looked_up
from sandboxgym.sandboxes.repo.swebench.rows import Row
from sandboxgym.sandboxes.repo.swebench.status import Results, Status

_PASSING = frozenset({Status.PASSED, Status.XFAIL})


@dataclass(frozen=True)
class Report:
    """What became of a task's tests. Its lists are not for the agent's eyes.

    Attributes:
        instance_id: The task.
        fixed: Tests that had to pass, and do.
        not_fixed: Tests that had to pass, and do not.
        kept: Tests that had to go on passing, and do.
        broken: Tests that had to go on passing, and do not.
    """

    instance_id: str
    fixed: tuple[str, ...]
    not_fixed: tuple[str, ...]
    kept: tuple[str, ...]
    broken: tuple[str, ...]

    @property
    def resolved(self) -> bool:
        """Whether everything is fixed and nothing is broken."""
        return bool(self.fixed) and not self.not_fixed and not self.broken

    @property
    def fraction_fixed(self) -> float:
        """How much of what had to be fixed is fixed."""
        return len(self.fixed) / max(1, len(self.fixed) + len(self.not_fixed))


def grade(row: Row, results: Results) -> Report:
    """Compare what became of the tests with what should have become of them.

    Args:
        row: The task.
        results: By the name of the test, whole or as the row has it.
    """
    fixed, not_fixed = _parted(row.fail_to_pass, results, _passes)
    kept, broken = _parted(row.pass_to_pass, results, _is_kept)
    return Report(row.instance_id, fixed, not_fixed, kept, broken)


def reward(report: Report, *, dense: bool = False) -> float:
    """1 for a solved task, else 0.

    Args:
        report: What became of its tests.
        dense: Instead, the fraction of what was to be fixed, if nothing is broken.
    """
    if dense:
        return 0.0 if report.broken else report.fraction_fixed
    return float(report.resolved)


def as_swebench(report: Report) -> dict[str, Any]:
    """The report in the form of `swebench`'s own, for those who compare or collect them."""
    status = {
        "FAIL_TO_PASS": {"success": list(report.fixed), "failure": list(report.not_fixed)},
        "PASS_TO_PASS": {"success": list(report.kept), "failure": list(report.broken)},
        "FAIL_TO_FAIL": {"success": [], "failure": []},
        "PASS_TO_FAIL": {"success": [], "failure": []},
    }
    return {
        report.instance_id: {
            "patch_is_None": False,
            "patch_exists": True,
            "patch_successfully_applied": True,
            "resolved": report.resolved,
            "infra_failure": False,
            "tests_status": status,
        }
    }


def _parted(
    expected: Iterable[str], results: Results, is_good: Callable[[Status | None], bool]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    found = looked_up([name for name in expected if is_test(name)], results)
    good = tuple(name for name, status in found.items() if is_good(status))
    bad = tuple(name for name, status in found.items() if not is_good(status))
    return good, bad


def _passes(status: Status | None) -> bool:
    return status in _PASSING


def _is_kept(status: Status | None) -> bool:
    return _passes(status) or status is Status.SKIPPED
