"""The log of `unittest` with verbosity 2, which is that of Django's runner too.

    test_one (tests.test_a.CaseA) ... ok
    test_two (tests.test_a.CaseA)
    The first line of its docstring. ... skipped 'no network'
    test_three (tests.test_a.CaseA) ... something that was printed
    ok
    ======================================
    FAIL: test_four (tests.test_a.CaseA) (i=3)
    The first line of its docstring.
    --------------------------------------

A test with a docstring is known by two names: rows have the docstring.
"""

from __future__ import annotations

import re

from sandboxgym.sandboxes.repo.swebench.parsers.text import lines_of
from sandboxgym.sandboxes.repo.swebench.status import Results, Status, note

_TEST = r"\w+ \([\w<>]+\.[\w.<>]+\)"
_TITLE = re.compile(_TEST)
# What was printed before without a newline may stand in front of the name, also the name of a test
# of which nothing was said (a part of it failed); and the parameters of a part of it behind it.
_STARTED = re.compile(rf".*\b(?P<name>{_TEST})(?: [(\[].*[)\]])? \.\.\. ?(?P<rest>.*)")
_STARTED_BY_DOCSTRING = re.compile(r"(?P<name>\S.*) \.\.\. ?(?P<rest>.*)")
_OUTCOMES = {
    "ok": Status.PASSED,
    "FAIL": Status.FAILED,
    "ERROR": Status.ERROR,
    "expected failure": Status.XFAIL,
    "unexpected success": Status.XPASS,
}
_FAILURE = re.compile(rf"(?P<status>FAIL|ERROR): (?P<name>{_TEST})(?: .*)?")


def parse_unittest(log: str) -> Results:
    """The status of each test."""
    results: Results = {}
    running: tuple[str, ...] = ()
    before = ""
    for line in (line.strip() for line in lines_of(log)):
        failure = _FAILURE.fullmatch(line)
        started = _STARTED.fullmatch(line) or _STARTED_BY_DOCSTRING.fullmatch(line)
        if failure is not None:
            note(results, failure["name"], _OUTCOMES[failure["status"]])
        elif _FAILURE.fullmatch(before):
            _note_docstring_of_failure(results, before, line)
        elif started is not None:
            running = _names(started["name"], before)
            running = _settled(results, running, started["rest"].strip())
        elif running:
            running = _settled(results, running, line)
        before = line
    return results


def _names(started: str, before: str) -> tuple[str, ...]:
    """Both names of a test with a docstring, else its one."""
    if not _TITLE.fullmatch(started) and _TITLE.fullmatch(before):
        return (started, before)
    return (started,)


def _settled(results: Results, running: tuple[str, ...], said: str) -> tuple[str, ...]:
    """Note the outcome if this is one; gives the names that still wait for theirs."""
    status = Status.SKIPPED if said.startswith("skipped ") else _OUTCOMES.get(said)
    if status is None:
        return running
    for name in running:
        note(results, name, status)
    return ()


def _note_docstring_of_failure(results: Results, heading: str, line: str) -> None:
    """A line between the heading of a failure and its rule is the test's other name."""
    failure = _FAILURE.fullmatch(heading)
    if failure is not None and line and not re.fullmatch(r"-{70}", line):
        note(results, line, _OUTCOMES[failure["status"]])
