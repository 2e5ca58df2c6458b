"""Pytest option `--forkable ID_OR_FACTORY`: add the conformance suite of an environment to a run.

    pytest --forkable sandboxgym/ALFWorld-v0 --forkable my_package.envs:make_env tests/

Imports nothing heavy unless the option is used.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from sandboxgym.conformance.check import Check
    from sandboxgym.conformance.runner import Suite


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("sandboxgym").addoption(
        "--forkable",
        action="append",
        default=[],
        metavar="ID_OR_FACTORY",
        help="run the conformance suite on this Gymnasium id or module:factory; may be repeated",
    )


def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Add one item for each check of each environment that the option names."""
    for name in config.getoption("--forkable"):
        environment = CheckedEnvironment.from_parent(session, name=name, nodeid=name)
        items.extend(environment.collect())


class CheckedEnvironment(pytest.Collector):
    """An environment whose checks are tests."""

    def collect(self) -> Iterable[pytest.Item]:
        """One item a check, with one suite for all."""
        from sandboxgym.conformance.checks import CHECKS
        from sandboxgym.conformance.runner import Suite
        from sandboxgym.conformance.source import EnvironmentNotFoundError, Source

        try:
            suite = Suite(Source.of(self.name))
        except EnvironmentNotFoundError as error:
            raise pytest.UsageError(f"--forkable: {error}") from error
        return [
            CheckItem.from_parent(self, name=check.name, check=check, suite=suite)
            for check in CHECKS
        ]


class CheckItem(pytest.Item):
    """One check as a test."""

    def __init__(self, *, check: Check, suite: Suite, **kwargs: object) -> None:
        super().__init__(**kwargs)  # type: ignore[arg-type]  # name and parent, from pytest
        self.check = check
        self.suite = suite

    def runtest(self) -> None:
        """Run the check."""
        from sandboxgym.conformance.contract import settle

        settle(self.suite.result(self.check))

    def reportinfo(self) -> tuple[str, None, str]:
        """Where reports say that the test is."""
        assert self.parent is not None
        return self.parent.name, None, self.name
