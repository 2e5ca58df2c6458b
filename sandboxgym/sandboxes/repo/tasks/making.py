"""Makes tasks from a tree with tests: breaks one function at a time, and keeps what tests notice.

A mistake is kept if the tests end, at least one of them fails and at most half of them do. Those
that fail are the ones that have to pass again, and the agent's tree does not have them.
"""

from __future__ import annotations

import random
import re
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sandboxgym.core.errors import SandboxGymError
from sandboxgym.sandboxes.repo.swebench.status import Results, Status
from sandboxgym.sandboxes.repo.tasks.hiding import hide
from sandboxgym.sandboxes.repo.tasks.mutations import Mutation, mutations
from sandboxgym.sandboxes.repo.tasks.running import (
    FRAMEWORKS,
    PYTEST,
    UNITTEST,
    Framework,
    run_tests,
)
from sandboxgym.sandboxes.repo.tasks.symptoms import symptom

TRIES = 6
"""Mistakes that are tried in a function before the next function has its turn."""

NONSENSE = "TypeError: unsupported operand type(s)"
"""Where this is all that tests say, it is a mistake that nobody makes: one text minus another."""

LEAST_SECONDS = 5.0
TIMES_LONGER = 5.0
"""Tests of a broken tree may take this many times longer than those of the whole one."""

_IMPORTED = re.compile(r"^\s*(?:import|from|import .*,)\s+(unittest|pytest)\b", re.MULTILINE)


class MakingError(SandboxGymError, ValueError):
    """No tasks can be made from this tree; the message says why."""


@dataclass(frozen=True)
class Broken:
    """A tree with one mistake that its tests notice.

    Attributes:
        file: Where the mistake is.
        mutation: The mistake.
        changed: The new text of every file that is not as it was: the broken one, and tests from
            which those are gone that notice.
        fail_to_pass: Tests that notice.
        pass_to_pass: Tests that do not.
        symptoms: What those that notice say, without the code that says it.
    """

    file: str
    mutation: Mutation
    changed: dict[str, str]
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    symptoms: dict[str, str]


class Maker:
    """Breaks a tree, which it changes while it works and leaves as it was.

    Args:
        tree: A folder of its own: nobody else may use it meanwhile.
        files: The files of the tree, as its repository lists them.
        framework: What runs the tests; None finds out.
        python: The interpreter that has what the tests need.
        seconds: How long all tests may take.

    Raises:
        MakingError: There are no tests, they fail, or they do not end.
    """

    def __init__(
        self,
        tree: Path,
        files: Iterable[str],
        *,
        framework: str | None = None,
        python: str = sys.executable,
        seconds: float = 300.0,
    ) -> None:
        self.tree = tree
        self.python = python
        modules = sorted(file for file in files if file.endswith(".py"))
        self.tests = [file for file in modules if is_test_file(file)]
        self.sources = [file for file in modules if not _is_of_tests(file)]
        if not self.tests:
            raise MakingError(
                "no tests: there is no file named test_*.py or *_test.py that git has committed"
            )
        self.framework = FRAMEWORKS[framework] if framework else _framework(tree, self.tests)
        self.passing = self._passing(seconds)

    def broken(self, seed: int, limit: int | None = None) -> Iterator[Broken]:
        """Trees with a mistake, at most one for a function, in an order that the seed decides."""
        chance = random.Random(seed)
        functions = self._functions()
        chance.shuffle(functions)
        made = 0
        for file, found in functions:
            if limit is not None and made == limit:
                return
            chance.shuffle(found)
            for mutation in found[:TRIES]:
                broken = self._tried(file, mutation)
                if broken is not None:
                    made += 1
                    yield broken
                    break

    def _functions(self) -> list[tuple[str, list[Mutation]]]:
        by_function: dict[tuple[str, str], list[Mutation]] = {}
        for file in self.sources:
            try:
                found = mutations((self.tree / file).read_text(encoding="utf-8"))
            except (SyntaxError, UnicodeDecodeError):
                continue  # For another Python, or a template: no mistake of ours.
            for mutation in found:
                by_function.setdefault((file, mutation.function), []).append(mutation)
        return [(file, found) for (file, _), found in by_function.items()]

    def _passing(self, seconds: float) -> list[str]:
        """The tests that pass twice; those that do so only once are nobody's."""
        started = time.monotonic()
        first = run_tests(self.tree, self.framework, seconds, self.python)
        self.seconds = max(LEAST_SECONDS, TIMES_LONGER * (time.monotonic() - started))
        end_of_log = " | ".join(first.log.strip().splitlines()[-5:])
        if not first.ended:
            raise MakingError(f"the tests did not end within {seconds:g} seconds")
        if not first.results:
            raise MakingError(f"no tests were found by {self._name()}; it said: {end_of_log}")
        failing = sorted(name for name, status in first.results.items() if _failed(status))
        if failing:
            raise MakingError(
                f"{len(failing)} of {len(first.results)} tests fail before anything is broken, "
                f"such as {failing[0]}: repair or remove them first; the end of the log: "
                f"{end_of_log}"
            )
        second = run_tests(self.tree, self.framework, seconds, self.python)
        return sorted(_passed(first.results) & _passed(second.results))

    def _name(self) -> str:
        return " ".join(("python3", *self.framework.command))

    def _tried(self, file: str, mutation: Mutation) -> Broken | None:
        """Break the tree; None where the tests do not notice it as they should."""
        path = self.tree / file
        whole = path.read_bytes()
        # Read and written as bytes: ends of lines stay what they are.
        mutated = mutation.of(whole.decode("utf-8"))
        path.write_bytes(mutated.encode("utf-8"))
        try:
            run = run_tests(self.tree, self.framework, self.seconds, self.python)
        finally:
            path.write_bytes(whole)
        if not run.ended:
            return None
        good = _passed(run.results)
        fail_to_pass = tuple(name for name in self.passing if name not in good)
        if not 1 <= len(fail_to_pass) <= len(self.passing) // 2:
            return None
        symptoms = {name: symptom(self.framework, run.log, name) for name in fail_to_pass}
        if all(said.startswith(NONSENSE) for said in symptoms.values()):
            return None
        without = hide(self.tree, fail_to_pass)
        if without is None:
            return None
        return Broken(
            file,
            mutation,
            {file: mutated, **without},
            fail_to_pass,
            tuple(name for name in self.passing if name in good),
            symptoms,
        )


def is_test_file(name: str) -> bool:
    """Whether a file has tests, by its name."""
    stem = Path(name).stem
    return stem.startswith("test_") or stem.endswith("_test") or stem in ("test", "tests")


def _is_of_tests(name: str) -> bool:
    """Whether a file has tests, or helps with them."""
    folders = Path(name).parts[:-1]
    helps = Path(name).name in ("conftest.py", "setup.py")
    return is_test_file(name) or helps or bool({"test", "tests", "testing", "docs"} & set(folders))


def _framework(tree: Path, tests: list[str]) -> Framework:
    """Unittest where every test file imports it and none imports pytest."""
    texts = [(tree / file).read_text(encoding="utf-8", errors="replace") for file in tests]
    imported = [set(_IMPORTED.findall(text)) for text in texts]
    if all("unittest" in names and "pytest" not in names for names in imported):
        return UNITTEST
    return PYTEST


def _passed(results: Results) -> set[str]:
    return {name for name, status in results.items() if status is Status.PASSED}


def _failed(status: Status) -> bool:
    return status in (Status.FAILED, Status.ERROR)
