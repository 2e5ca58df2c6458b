"""Reports what pytest finds."""

import unittest.case
from typing import Any, Iterator, Optional

FROM_BEST = ["PASSED", "XFAIL", "XPASS", "SKIPPED", "FAILED", "ERROR"]


def status_of(call: Any, made: Any) -> Optional[str]:
    """What a phase of a test says about it; None for nothing."""
    expected_to_fail = hasattr(made, "wasxfail")
    if made.outcome == "skipped":
        return "XFAIL" if expected_to_fail else "SKIPPED"
    if made.outcome == "failed" or call.excinfo is not None:
        return "FAILED" if made.when == "call" else "ERROR"
    if made.when == "call":
        return "XPASS" if expected_to_fail else "PASSED"
    return None


def plugin(channel: Any) -> Any:
    """A plugin that speaks last about each test: when all of it is over."""
    import _pytest.python
    import _pytest.runner
    import pytest

    class Reporter:
        def __init__(self) -> None:
            self.heard = []  # type: Any

        @pytest.hookimpl(tryfirst=True)
        def pytest_load_initial_conftests(self) -> None:
            """Plugins are loaded, and nothing of the repository is yet."""
            channel.watch(_pytest.runner, _pytest.python.Function, unittest.case.TestCase)

        @pytest.hookimpl(hookwrapper=True, tryfirst=True)
        def pytest_runtest_makereport(self, item: Any, call: Any) -> Iterator[None]:
            outcome = yield  # type: Any
            made = outcome.get_result()
            if made.when == "setup":
                self.heard = []
            status = status_of(call, made)
            if status is not None:
                self.heard.append(status)
            if made.when == "teardown" and self.heard:
                channel.report(max(self.heard, key=FROM_BEST.index), item.nodeid)

    return Reporter()


def main(channel: Any) -> None:
    """Run pytest; before the repository's path takes effect, except where pytest comes from it."""
    try:
        import pytest
    except ImportError:
        channel.add_to_path()
        import pytest
    reporter = plugin(channel)
    channel.add_to_path()
    channel.finish(int(pytest.main(channel.arguments, plugins=[reporter])))
