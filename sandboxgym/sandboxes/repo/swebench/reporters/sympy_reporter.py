"""Reports what SymPy's own runner finds.

The runner is a part of the repository, so the patch that is graded must not change it.
"""

import importlib
import os
import sys
from typing import Any, Callable

EVENTS = {
    "test_pass": "PASSED",
    "test_xfail": "XFAIL",
    "test_xpass": "XPASS",
    "test_skip": "SKIPPED",
    "test_fail": "FAILED",
    "test_exception": "ERROR",
}


def runner_of_sympy() -> Any:
    """The module with the runner; it moved once."""
    sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module("sympy.testing.runtests")
    except ImportError:
        return importlib.import_module("sympy.utilities.runtests")


def listen(kind: Any, channel: Any) -> None:
    """Hear what the runner tells its reporter."""
    enter = kind.entering_test

    def entering_test(self: Any, function: Any) -> Any:
        self._heard_name = "{}::{}".format(self._active_file, function.__name__)
        return enter(self, function)

    def event(tell: Any, status: str) -> Callable[..., Any]:
        def told_of(self: Any, *arguments: Any, **named: Any) -> Any:
            if getattr(self, "_heard_name", None) is not None:
                channel.report(status, self._heard_name)
            return tell(self, *arguments, **named)

        return told_of

    kind.entering_test = entering_test
    for name, status in EVENTS.items():
        setattr(kind, name, event(getattr(kind, name), status))


def main(channel: Any) -> None:
    """Run SymPy's script for its tests."""
    words = list(channel.arguments)
    # Both are the runner's own options: it would start another process, and draw a seed.
    words[1:1] = ["--no-subprocess", "--seed=1"]
    if "-C" in words:
        os.environ["SYMPY_USE_CACHE"] = "no"  # As the script does, before SymPy is loaded.
    channel.add_to_path()
    runner = runner_of_sympy()
    listen(runner.PyTestReporter, channel)
    channel.watch(runner.SymPyTests, runner.PyTestReporter)
    channel.finish(channel.run_script(words))
