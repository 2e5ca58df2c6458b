"""The log of SymPy's own runner, `bin/test --verbose`.

    sympy/core/tests/test_basic.py[3]
    test_structure ok
    test_equality F
    test_has a reason s                    [FAIL]

Names of tests come without their file, as in the rows.
"""

from __future__ import annotations

import re

from sandboxgym.sandboxes.repo.swebench.parsers.text import lines_of
from sandboxgym.sandboxes.repo.swebench.status import Results, Status, note

_OUTCOMES = {
    "ok": Status.PASSED,
    "F": Status.FAILED,
    "E": Status.ERROR,
    "f": Status.XFAIL,
    "X": Status.XPASS,
    "s": Status.SKIPPED,
    "w": Status.SKIPPED,
    "K": Status.SKIPPED,
    "T": Status.ERROR,
}
# The last test of a file has the file's result behind it.
_TEST = re.compile(
    rf"(?P<name>test_\w+) (?:.* )?(?P<outcome>{'|'.join(_OUTCOMES)})"
    r"(?:\s+\[(?:OK|FAIL)\])?"
)


def parse_sympy(log: str) -> Results:
    """The status of each test."""
    results: Results = {}
    for line in lines_of(log):
        test = _TEST.fullmatch(line.strip())
        if test is not None:
            note(results, test["name"], _OUTCOMES[test["outcome"]])
    return results
