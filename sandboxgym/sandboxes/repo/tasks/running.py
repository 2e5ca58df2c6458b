"""Runs the tests of a folder on this machine, and says what became of each.

This is for code that its owner trusts, such as the repository that tasks are made from. Agents are
graded in sandboxes.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from sandboxgym.sandboxes.repo.swebench.parsers import PARSERS
from sandboxgym.sandboxes.repo.swebench.status import Results

_METHOD = re.compile(r"(?P<method>\w+) \((?P<case>[\w.]+?)(?:\.(?P=method))?\)")


@dataclass(frozen=True)
class Framework:
    """How tests are run and read.

    Attributes:
        name: "unittest" or "pytest".
        command: What runs all tests, as words after `python3`.
        log_parser: Name of the parser for what it prints.
    """

    name: str
    command: tuple[str, ...]
    log_parser: str

    def environment(self, tree: Path) -> dict[str, str]:
        """Variables that the tests need: where the packages are, if not in the root."""
        source = tree / "src"
        if source.is_dir() and not (source / "__init__.py").exists():
            return {"PYTHONPATH": "src"}
        return {}


UNITTEST = Framework("unittest", ("-m", "unittest", "-v"), "parse_log_unittest")
PYTEST = Framework("pytest", ("-m", "pytest", "-rA", "-p", "no:cacheprovider"), "parse_log_flask")
FRAMEWORKS = {framework.name: framework for framework in (UNITTEST, PYTEST)}


@dataclass(frozen=True)
class TestRun:
    """What became of the tests.

    Attributes:
        results: The status of each, by the name that rows have for it.
        ended: False where time was up.
        log: What was printed.
    """

    __test__ = False  # Not a test case, whatever pytest may think of its name.

    results: Results
    ended: bool
    log: str


def run_tests(
    tree: Path, framework: Framework, seconds: float, python: str = sys.executable
) -> TestRun:
    """Run all tests of a tree.

    Args:
        tree: The folder.
        framework: How.
        seconds: When they are ended, with all processes that they started in their group.
        python: The interpreter that has what they need.
    """
    environment = {
        **os.environ,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        **framework.environment(tree),
    }
    process = subprocess.Popen(
        [python, *framework.command],
        cwd=tree,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    ended = True
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        ended = False
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    log = output.decode("utf-8", "replace")
    return TestRun(_named_as_in_rows(framework, PARSERS[framework.log_parser](log)), ended, log)


def _named_as_in_rows(framework: Framework, results: Results) -> Results:
    """The names of unittest without docstrings, and without a method's name at the end."""
    if framework is not UNITTEST:
        return results
    named: Results = {}
    for name, status in results.items():
        match = _METHOD.fullmatch(name)
        if match is not None and "unittest.loader" not in match["case"]:
            named[f"{match['method']} ({match['case']})"] = status
    return named
