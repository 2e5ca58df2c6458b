"""What failing tests say, without the code that says it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sandboxgym.sandboxes.repo.tasks.running import PYTEST, Framework

MAX_SHOWN = 8
_ERROR = re.compile(r"[\w.]*(Error|Exception|Exit|Interrupt)\b.*")
_HEADING = re.compile(r"(?:FAIL|ERROR): (?P<method>\w+) \((?P<case>[\w.]+)\)")
_SUMMARY = re.compile(r"(?:FAILED|ERROR) (?P<name>\S.*?) - (?P<error>.*)")


def symptom(framework: Framework, log: str, test: str) -> str:
    """The error of a failing test in one line; empty where it is not to be found."""
    if framework is PYTEST:
        for line in log.splitlines():
            summary = _SUMMARY.fullmatch(line)
            if summary is not None and summary["name"] == test:
                return summary["error"]
        return ""
    inside = False
    for line in log.splitlines():
        heading = _HEADING.match(line)
        if heading is not None:
            method, case = heading["method"], heading["case"].removesuffix(f".{heading['method']}")
            inside = test == f"{method} ({case})"
        elif inside and _ERROR.fullmatch(line):
            return line
    return ""


def statement(project: str, symptoms: Iterable[tuple[str, str]]) -> str:
    """What an agent is told about a task for which nobody wrote it down.

    Args:
        project: Name of the repository.
        symptoms: Names of tests and their errors.
    """
    all_symptoms = list(symptoms)
    lines = [f"- `{name}`: {error or 'fails'}" for name, error in all_symptoms[:MAX_SHOWN]]
    if len(all_symptoms) > MAX_SHOWN:
        lines.append(f"- and {len(all_symptoms) - MAX_SHOWN} more")
    return (
        f"Something in {project} stopped working. Checks that used to pass fail now; they are not "
        "in this tree, and this is what they say:\n\n" + "\n".join(lines) + "\n\n"
        "Find the reason and repair it. Everything else has to stay as it is.\n"
    )
