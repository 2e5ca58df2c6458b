"""Rows of SWE-bench: what a task is, read from files or from the hub, and checked.

The format is that of `swebench` 5, in which a row says itself how it is tested (`eval_script`,
`log_parser`). Rows of the older format are converted.
"""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sandboxgym.core.errors import DataNotFoundError, MissingDependencyError, SandboxGymError
from sandboxgym.sandboxes.repo.swebench.parsers import PARSERS

PASS_AND_FAIL = "pass_and_fail"
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
_REPO = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")
_COMMIT = re.compile(r"[0-9a-f]{7,64}|")


class RowError(SandboxGymError, ValueError):
    """A row is not as the format asks; the message names the row and the field."""


@dataclass(frozen=True)
class Setup:
    """How to make the environment of a task without its image.

    Attributes:
        python: Version of Python, such as "3.11".
        pins: What is installed, as pip takes it.
        environment: Variables that the tests need, such as PYTHONPATH; paths are those of the
            repository.
    """

    python: str
    pins: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """A task.

    Attributes:
        instance_id: Its name.
        repo: The repository, as owner/name.
        version: The repository's version at the task's commit.
        base_commit: Where the agent begins; empty where the tree comes without a history.
        problem_statement: What the agent is told.
        patch: The solution.
        test_patch: The tests that say whether it is solved.
        fail_to_pass: Tests that fail before the solution, and have to pass.
        pass_to_pass: Tests that pass before it, and have to go on passing.
        image: Name of a Docker image with the repository and its environment.
        eval_script: A script for that image that applies `test_patch` and runs the tests.
        log_parser: Name of the parser for what the script prints.
        setup: How to do without the image.
        base_patch: What the agent's tree is beside the base commit, such as a fault put there.
    """

    instance_id: str
    repo: str
    version: str
    base_commit: str
    problem_statement: str
    patch: str
    test_patch: str
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    image: str
    eval_script: str
    log_parser: str
    setup: Setup | None = None
    base_patch: str = ""


def read_rows(source: str | os.PathLike[str], split: str = "test") -> list[Row]:
    """Read rows.

    Args:
        source: A file (`.jsonl`, `.jsonl.gz`, `.json` with a list, `.parquet`), or the name of a
            data set of the hub, such as "princeton-nlp/SWE-bench_Verified".
        split: Of the data set.

    Raises:
        DataNotFoundError: There is no such file.
        MissingDependencyError: Parquet or the hub, and no package for it.
        RowError: A row is malformed, or two have the same name.
    """
    path = Path(source)
    if path.is_file():
        raws = _read_file(path)
    elif _REPO.fullmatch(str(source)) and not path.parent.exists():
        raws = _read_hub(str(source), split)
    else:
        raise DataNotFoundError(
            f"no rows at {str(source)!r}: give a .jsonl, .jsonl.gz, .json or .parquet file, or the "
            "name of a data set of the hub (owner/name)"
        )
    return _all_different(row_of(raw, where) for where, raw in raws)


def row_of(raw: Mapping[str, Any], where: str = "row") -> Row:
    """Check a row of either format.

    Args:
        raw: Its fields; those of no use here are passed over.
        where: How messages name it while it has no name.

    Raises:
        RowError: It is malformed.
    """
    if not isinstance(raw, Mapping):
        raise RowError(f"{where}: a row is an object with fields, not {type(raw).__name__}")
    named = raw.get("instance_id")
    fields = _Fields(raw, named if isinstance(named, str) and named else where)
    if "eval_script" not in raw:
        from sandboxgym.sandboxes.repo.swebench.old_rows import converted

        fields = _Fields(converted(raw, fields.name), fields.name)
    eval_type = fields.text("eval_type", default=PASS_AND_FAIL)
    if eval_type != PASS_AND_FAIL:
        raise fields.error("eval_type", f"is {eval_type!r}; only {PASS_AND_FAIL!r} is graded here")
    log_parser = fields.text("log_parser")
    if log_parser not in PARSERS:
        raise fields.error(
            "log_parser", f"{log_parser!r} is not known; known are {', '.join(sorted(PARSERS))}"
        )
    fail_to_pass = fields.names("FAIL_TO_PASS")
    if not fail_to_pass:
        raise fields.error("FAIL_TO_PASS", "is empty, so that nothing says when it is solved")
    return Row(
        instance_id=fields.text("instance_id", _ID),
        repo=fields.text("repo", _REPO),
        version=fields.text("version", default=""),
        base_commit=fields.text("base_commit", _COMMIT),
        problem_statement=fields.text("problem_statement"),
        patch=fields.text("patch"),
        test_patch=fields.text("test_patch", default=""),
        fail_to_pass=fail_to_pass,
        pass_to_pass=fields.names("PASS_TO_PASS"),
        image=fields.text("image", default=""),
        eval_script=fields.text("eval_script"),
        log_parser=log_parser,
        setup=fields.setup(),
        base_patch=fields.text("base_patch", default=""),
    )


class _Fields:
    """The fields of a row, and errors that name them."""

    def __init__(self, raw: Mapping[str, Any], name: str) -> None:
        self.raw = raw
        self.name = name

    def error(self, key: str, reason: str) -> RowError:
        return RowError(f"{self.name}: field {key!r} {reason}")

    def text(
        self, key: str, pattern: re.Pattern[str] | None = None, default: str | None = None
    ) -> str:
        value = self.raw.get(key)
        if value is None and default is not None:
            return default
        if value is None:
            raise self.error(key, "is missing")
        if not isinstance(value, str):
            raise self.error(key, f"is not a string but {type(value).__name__}")
        if pattern is not None and not pattern.fullmatch(value):
            raise self.error(key, f"is {value!r}, which does not have the form it should have")
        return value

    def names(self, key: str) -> tuple[str, ...]:
        """A list, or (as the hub has it) a list written down as JSON."""
        value = self.raw.get(key)
        if value is None:
            raise self.error(key, "is missing")
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except ValueError as error:
                raise self.error(key, f"is a string but no JSON: {error}") from None
        return self.strings(key, value)

    def strings(self, key: str, value: Any) -> tuple[str, ...]:
        if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
            raise self.error(key, "is not a list of strings")
        items = tuple(value)
        for item in items:
            if not isinstance(item, str):
                raise self.error(key, f"has an entry that is no string: {item!r}")
        return items

    def setup(self) -> Setup | None:
        value = self.raw.get("setup")
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise self.error("setup", "is not an object")
        inner = _Fields(value, f"{self.name}: setup")
        unknown = sorted(set(value) - {"python", "pins", "environment"})
        if unknown:
            raise self.error("setup", f"has unknown fields {unknown}")
        environment = value.get("environment") or {}
        if not isinstance(environment, Mapping):
            raise inner.error("environment", "is not an object")
        return Setup(
            python=inner.text("python", re.compile(r"\d+\.\d+(\.\d+)?")),
            pins=inner.strings("pins", value.get("pins") or ()),
            environment={key: _Fields(environment, inner.name).text(key) for key in environment},
        )


def _all_different(rows: Iterable[Row]) -> list[Row]:
    by_name: dict[str, Row] = {}
    for row in rows:
        if row.instance_id in by_name:
            raise RowError(f"{row.instance_id}: field 'instance_id' is that of another row too")
        by_name[row.instance_id] = row
    return list(by_name.values())


def _read_file(path: Path) -> Iterator[tuple[str, Any]]:
    """The rows of a file, each with its place."""
    if path.name.endswith(".parquet"):
        return _read_parquet(path)
    opened = gzip.open if path.name.endswith(".gz") else open
    try:
        with opened(path, "rt", encoding="utf-8") as file:
            text = file.read()
    except (UnicodeDecodeError, EOFError, gzip.BadGzipFile) as error:
        raise RowError(f"{path}: cannot be read as text: {error}") from None
    if path.name.removesuffix(".gz").endswith(".json"):
        return _numbered(path, "entry", [text], whole=True)
    # Not splitlines(): a string in JSON may have U+2028 and its like as they are.
    return _numbered(path, "line", text.split("\n"), whole=False)


def _numbered(path: Path, unit: str, texts: list[str], *, whole: bool) -> Iterator[tuple[str, Any]]:
    for number, text in enumerate(texts, start=1):
        if not text.strip():
            continue
        try:
            value = json.loads(text)
        except ValueError as error:
            place = path if whole else f"{path}, {unit} {number}"
            raise RowError(f"{place}: no JSON: {error}") from None
        if not whole:
            yield f"{path}, {unit} {number}", value
        elif isinstance(value, list):
            yield from ((f"{path}, {unit} {at}", raw) for at, raw in enumerate(value, start=1))
        else:
            raise RowError(f"{path}: not a list of rows")


def _read_parquet(path: Path) -> Iterator[tuple[str, Any]]:
    try:
        import pyarrow.parquet
    except ImportError:
        raise MissingDependencyError(
            'reading parquet needs pyarrow: pip install "sandboxgym[swebench]"'
        ) from None
    rows = pyarrow.parquet.read_table(path).to_pylist()
    return ((f"{path}, row {at}", raw) for at, raw in enumerate(rows, start=1))


def _read_hub(name: str, split: str) -> Iterator[tuple[str, Any]]:
    try:
        import datasets
    except ImportError:
        raise MissingDependencyError(
            f"there is no file {name!r}, and reading it from the hub needs datasets: "
            'pip install "sandboxgym[swebench]"'
        ) from None
    rows = datasets.load_dataset(name, split=split)
    return ((f"{name}, row {at}", raw) for at, raw in enumerate(rows, start=1))
