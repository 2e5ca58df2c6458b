"""Reports what unittest finds, and Django's runner with it."""

import unittest.case
import unittest.result
from typing import Any, Callable, List

FROM_BEST = ["PASSED", "XFAIL", "XPASS", "SKIPPED", "FAILED", "ERROR"]
EVENTS = {
    "addSuccess": "PASSED",
    "addExpectedFailure": "XFAIL",
    "addUnexpectedSuccess": "XPASS",
    "addSkip": "SKIPPED",
    "addFailure": "FAILED",
    "addError": "ERROR",
}


def names_of(test: Any) -> List[str]:
    """The test's name, and the first line of its docstring, from what it is and not what it says.

    A test case could give out any name as its `id()`.
    """
    kind = type(test)
    method = test._testMethodName
    names = ["{} ({}.{})".format(method, kind.__module__, kind.__qualname__)]
    described = (getattr(kind, method).__doc__ or "").strip()
    if described:
        names.append(described.split("\n")[0].strip())
    return names


class Listener:
    """Hears what the run's own result is told; tests of test runners have results too."""

    def __init__(self, channel: Any) -> None:
        self.channel = channel
        self.result = None  # type: Any
        self.heard = []  # type: Any

    def is_own(self, result: Any) -> bool:
        """Whether it is the first result that something is said to."""
        if self.result is None:
            self.result = result
        return bool(result is self.result)

    def started(self, result: Any) -> None:
        """A test starts."""
        if self.is_own(result):
            self.heard = []

    def happened(self, result: Any, status: str) -> None:
        """Something is said about the test that runs."""
        if self.is_own(result):
            self.heard.append(status)

    def stopped(self, result: Any, test: Any) -> None:
        """The test is over; one of which nothing was said has not passed."""
        if self.is_own(result) and isinstance(test, unittest.case.TestCase):
            status = max(self.heard or ["FAILED"], key=FROM_BEST.index)
            self.channel.report(status, *names_of(test))
            self.heard = []  # Python 3.12.1 skips tests without starting them.


def listen(listener: Listener) -> None:
    """Put the listener between unittest and its results."""
    kind = unittest.result.TestResult  # type: Any
    start, stop, subtest = kind.startTest, kind.stopTest, kind.addSubTest

    def event(add: Any, status: str) -> Callable[..., Any]:
        def told_of(self: Any, *arguments: Any, **named: Any) -> Any:
            listener.happened(self, status)
            return add(self, *arguments, **named)

        return told_of

    def start_test(self: Any, test: Any) -> Any:
        listener.started(self)
        return start(self, test)

    def stop_test(self: Any, test: Any) -> Any:
        listener.stopped(self, test)
        return stop(self, test)

    def add_subtest(self: Any, test: Any, inner: Any, error: Any) -> Any:
        if error is not None:
            listener.happened(self, "FAILED")
        return subtest(self, test, inner, error)

    for name, status in EVENTS.items():
        setattr(kind, name, event(getattr(kind, name), status))
    kind.startTest, kind.stopTest, kind.addSubTest = start_test, stop_test, add_subtest


def main(channel: Any) -> None:
    """Run the script or module that runs the tests."""
    listen(Listener(channel))
    channel.watch(unittest.case.TestCase, unittest.result.TestResult)
    channel.add_to_path()
    channel.finish(channel.run_script(channel.arguments))
