"""What a run of the conformance suite found: as text, as JSON, as JUnit XML, as an exception."""

from __future__ import annotations

import json
import math
import textwrap
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from sandboxgym.core.errors import SandboxGymError

Status = Literal["passed", "failed", "warned", "not run"]

_MARKS: dict[Status, str] = {
    "passed": "pass",
    "failed": "FAIL",
    "warned": "warn",
    "not run": "----",
}
_INDENT = " " * 6

JSON_FORMAT = "sandboxgym-conformance/1"
"""Name and version of the JSON report; the version changes when the meaning of a field does."""


class ConformanceError(SandboxGymError, AssertionError):
    """A check of the conformance suite failed, or none was run; the message is the report."""


class ConformanceWarning(UserWarning):
    """A check left a doubt; the message is its result."""


@dataclass(frozen=True)
class CheckResult:
    """Outcome of one check.

    Attributes:
        name: Number and short name of the check.
        why: What goes wrong for users of an environment that does not pass.
        status: "passed", "failed", "warned" (nothing proven wrong) or "not run".
        message: What was found: the fault, the doubt, the reason not to run, or a note.
        path: The first differing leaf, of `obs`, `info`, `reward` and so on.
        expected: Its value in the original.
        found: Its value here.
        seed: Seed of the episode that shows the fault.
        actions: Actions of that episode up to the fault.
        traceback: Of the exception, or where the process was when it crashed or hung.
        output: The end of what was printed, where the process had to be ended.
        reproduce: A command, or lines of Python, that run this check on this episode alone.
        seconds: How long the check took.
    """

    name: str
    why: str
    status: Status
    message: str = ""
    path: str | None = None
    expected: str | None = None
    found: str | None = None
    seed: int | None = None
    actions: list[Any] | None = None
    traceback: str | None = None
    output: str = ""
    reproduce: str | None = None
    seconds: float = 0.0

    @property
    def number(self) -> str:
        """The check's number, as text."""
        return self.name.partition("-")[0]

    def __str__(self) -> str:
        lines = [f"{_MARKS[self.status]}  {self.name}"]
        if self.status in ("failed", "warned"):
            lines.append(_indented(f"why: {self.why}"))
        if self.message:
            lines.append(_indented(self.message))
        if self.path is not None:
            lines.append(_indented(f"at {self.path}: expected {self.expected}, found {self.found}"))
        if self.actions is not None:
            lines.append(_indented(f"seed {self.seed}, actions {jsonable(self.actions)}"))
        if self.reproduce is not None:  # not wrapped, so that it can be copied
            lines.append(textwrap.indent(f"reproduce:\n  {_hanging(self.reproduce)}", _INDENT))
        if self.traceback is not None:
            lines.append(textwrap.indent(self.traceback.rstrip(), _INDENT))
        if self.output:
            lines.append(textwrap.indent(f"printed last:\n{self.output.rstrip()}", _INDENT))
        return "\n".join(lines)


@dataclass(frozen=True)
class Facts:
    """What is known of an environment once it was made.

    Attributes:
        mechanism: How it forks, in words.
        versions: What it says about its versions.
        choice: What `forkable` chose for it, and what it rejected and why; "" where it chose
            nothing.
        made: Whether one could be made at all.
    """

    mechanism: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    choice: str = ""
    made: bool = False


@dataclass(frozen=True)
class ConformanceReport:
    """Outcome of all checks of one environment.

    Attributes:
        env: What was checked.
        mechanism: How it forks, in words; "" where no environment could be made.
        seeds: Seeds of the recorded episodes.
        depth: Their length.
        versions: Versions of what took part.
        results: One result a check, in order.
        started: When the first check began, in UTC, as ISO 8601.
        choice: What `forkable` chose, and what it rejected and why, in words.
    """

    env: str
    mechanism: str
    seeds: list[int]
    depth: int
    versions: dict[str, str]
    results: list[CheckResult]
    started: str = ""
    choice: str = ""

    @property
    def ok(self) -> bool:
        """Whether something was proven and nothing failed.

        Checks that were not run are no proof, so a report in which none passed is not ok.
        """
        return not self.failures and bool(self._having("passed") or self._having("warned"))

    @property
    def failures(self) -> list[CheckResult]:
        """The checks that failed."""
        return self._having("failed")

    @property
    def warnings(self) -> list[CheckResult]:
        """The checks that left a doubt."""
        return self._having("warned")

    @property
    def not_run(self) -> list[CheckResult]:
        """The checks that prove nothing because they were not run."""
        return self._having("not run")

    def _having(self, status: Status) -> list[CheckResult]:
        return [result for result in self.results if result.status == status]

    def raise_for_failures(self) -> None:
        """Raise unless the report is `ok`.

        Raises:
            ConformanceError: With the report as its message.
        """
        if not self.ok:
            raise ConformanceError(str(self))

    def header(self) -> str:
        """What was checked, in a line or two."""
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        how = f"{self.mechanism}; " if self.mechanism else ""
        choice = f"{self.choice}\n" if self.choice else ""
        return f"{self.env}\n{choice}{how}seeds {self.seeds}, depth {self.depth}; {versions}\n"

    def summary(self) -> str:
        """The counts, in a line."""
        counts = [
            f"{len(self._having(status))} {status}"
            for status in ("passed", "failed", "warned", "not run")
            if self._having(status) or status in ("passed", "failed")
        ]
        verdict = "ok" if self.ok else "NOT OK" if self.failures else "NOTHING PROVEN"
        return f"\n{verdict}: {', '.join(counts)}"

    def __str__(self) -> str:
        return "\n".join([self.header(), *map(str, self.results), self.summary()])

    @property
    def seconds(self) -> float:
        """How long the checks took together."""
        return sum(result.seconds for result in self.results)

    def as_dict(self) -> dict[str, Any]:
        """The report as data that JSON can hold; the documentation says what is in it."""
        counts = {status: len(self._having(status)) for status in _MARKS}
        head = {"format": JSON_FORMAT, "ok": self.ok, "counts": counts, "seconds": self.seconds}
        return {**head, **jsonable(asdict(self))}

    def to_json(self) -> str:
        """The report as JSON."""
        return json.dumps(self.as_dict(), indent=2)

    def to_junit(self) -> str:
        """The report as JUnit XML, for systems that show test results."""
        from sandboxgym.conformance.junit import junit  # which knows this class

        return junit(self)


def _indented(text: str) -> str:
    lines = (
        textwrap.wrap(
            line,
            94,
            initial_indent=_INDENT,
            subsequent_indent=_INDENT,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for line in text.splitlines()
    )
    return "\n".join(part for wrapped in lines for part in wrapped)


def _hanging(text: str) -> str:
    return text.replace("\n", "\n  ")


def jsonable(value: Any) -> Any:
    """`value` in terms of JSON; what JSON does not have becomes its nearest relative."""
    if isinstance(value, dict):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return jsonable(value.tolist())
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    return repr(value)
