"""Pytest option `--forkable ID_OR_FACTORY`: add the conformance suite of an environment to a run.

    pytest --forkable sandboxgym/ALFWorld-v0 --forkable my_package.envs:make_env tests/
    pytest --forkable CartPole-v1 --forkable-seeds 5 --forkable-only 06 --forkable-time-budget 60

The options `--forkable-…` hold for all environments that `--forkable` names; each can also be set
in the configuration file, under its name with underscores (`forkable_seeds = 5`). Imports nothing
heavy unless `--forkable` is used.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from sandboxgym.conformance.check import Check
    from sandboxgym.conformance.options import Options
    from sandboxgym.conformance.runner import Suite


@dataclass(frozen=True)
class _Setting:
    """One option of the suite, on the command line and in the configuration file."""

    name: str
    convert: Any
    help: str
    many: bool = False

    @property
    def option(self) -> str:
        return f"--forkable-{self.name.replace('_', '-')}"

    @property
    def ini(self) -> str:
        return f"forkable_{self.name}"

    def value(self, config: pytest.Config) -> Any:
        """What was given on the command line, else in the configuration file, else None."""
        given = config.getoption(self.option)
        if not given:
            given = config.getini(self.ini)
        if not given:
            return None
        try:
            return [self.convert(x) for x in given] if self.many else self.convert(given)
        except ValueError as error:
            raise pytest.UsageError(f"{self.option}: {error}") from error


_SETTINGS = {
    setting.name: setting
    for setting in (
        _Setting("seeds", int, "how many seeds, from 0 on"),
        _Setting("seed", int, "this very seed; may be repeated", many=True),
        _Setting("depth", int, "length of the recorded episodes"),
        _Setting("policy", str, "module:function that plays them"),
        _Setting("only", str, "number or name of a check to run; may be repeated", many=True),
        _Setting("skip", str, "number or name of a check not to run; may be repeated", many=True),
        _Setting("time_budget", float, "seconds for the whole suite"),
        _Setting("memory_budget", float, "megabytes that the environment may take"),
        _Setting("call_timeout", float, "seconds in which a call has to return"),
    )
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("sandboxgym")
    group.addoption(
        "--forkable",
        action="append",
        default=[],
        metavar="ID_OR_FACTORY",
        help="run the conformance suite on this Gymnasium id or module:factory; may be repeated",
    )
    for setting in _SETTINGS.values():
        text = f"for --forkable: {setting.help}"
        group.addoption(setting.option, action="append" if setting.many else "store", help=text)
        if setting.many:
            parser.addini(setting.ini, text, type="args", default=[])
        else:
            parser.addini(setting.ini, text, type="string", default="")


def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Add one item for each check of each environment that the option names."""
    for name in config.getoption("--forkable"):
        environment = CheckedEnvironment.from_parent(session, name=name, nodeid=name)
        items.extend(environment.collect())


class CheckedEnvironment(pytest.Collector):
    """An environment whose checks are tests."""

    suite: Suite

    def collect(self) -> Iterable[pytest.Item]:
        """One item a check, with one suite for all."""
        from sandboxgym.conformance.runner import Suite
        from sandboxgym.conformance.source import Source
        from sandboxgym.core.errors import SandboxGymError

        try:
            options = _options(self.config)
            self.suite = Suite(Source.of(self.name), options)
        except SandboxGymError as error:
            raise pytest.UsageError(f"--forkable: {error}") from error
        return [
            CheckItem.from_parent(self, name=check.name, check=check, suite=self.suite)
            for check in options.checks()
        ]

    def teardown(self) -> None:
        """End the processes of the suite."""
        self.suite.close()


def _options(config: pytest.Config) -> Options:
    """The options that the user gave; those not given keep their defaults."""
    from sandboxgym.conformance.options import OptionError, Options

    given = {name: setting.value(config) for name, setting in _SETTINGS.items()}
    given = {name: value for name, value in given.items() if value is not None}
    count, seeds = given.pop("seeds", None), given.pop("seed", None)
    if count is not None and seeds is not None:
        raise OptionError("give --forkable-seeds or --forkable-seed, not both")
    if count is not None:
        seeds = range(count)
    return Options(**given) if seeds is None else Options(seeds=seeds, **given)


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
