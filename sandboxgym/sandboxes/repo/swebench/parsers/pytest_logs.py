"""The log of `pytest -rA`, with or without `-v`.

A run ends with a summary that has one line for each test:

    =========== short test summary info ===========
    PASSED tests/test_a.py::test_one
    PASSED tests/test_a.py::test_two[a b]
    SKIPPED [1] tests/test_a.py:7: no network
    FAILED tests/test_a.py::test_three - assert 1 == 2

Only what stands behind the last such heading says that a test passed: what tests printed themselves
stands before it. With `-v` there are lines of progress too, from which we learn which tests were
skipped; without any summary (the oldest versions) they are all there is.
"""

from __future__ import annotations

import re

from sandboxgym.sandboxes.repo.swebench.parsers.text import lines_of
from sandboxgym.sandboxes.repo.swebench.status import Results, Status, note

_STATUS = "(?P<status>" + "|".join(status.value for status in Status) + ")"
# A file, or a test in it. A parameter may have anything in it; the first bracket that can be its
# end is taken for it.
_TEST = r"(?P<name>[^\s\[:]+::[^\s\[]+(?:\[.*?\])?|[^\s\[:]+\.(?:py|rst|txt|md))"
_SUMMARY = re.compile(rf"{_STATUS} {_TEST}(?: - .*)?")
_PROGRESS = re.compile(rf"{_TEST} {_STATUS}(?: \(.*\))?(?: *\[ *\d+%\]| *\[ *\d+/\d+\])?")
_HEADING = re.compile(r"=+ short test summary info =+")


def parse_pytest(log: str) -> Results:
    """The status of each test."""
    lines = lines_of(log)
    headings = [at for at, line in enumerate(lines) if _HEADING.fullmatch(line.strip())]
    results: Results = {}
    if not headings:
        for line in lines:
            _note_matching(results, _PROGRESS, line)
            _note_matching(results, _SUMMARY, line)
        return results
    for line in lines[headings[-1] :]:
        _note_matching(results, _SUMMARY, line)
    for line in lines[: headings[-1]]:
        progress = _PROGRESS.fullmatch(line.rstrip())
        if progress is not None and progress["status"] != Status.PASSED.value:
            note(results, progress["name"], Status(progress["status"]))
    return results


def _note_matching(results: Results, form: re.Pattern[str], line: str) -> None:
    matched = form.fullmatch(line.rstrip())
    if matched is not None:
        note(results, matched["name"], Status(matched["status"]))
