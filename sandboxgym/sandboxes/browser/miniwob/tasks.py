"""The tasks of MiniWoB++, as the files of the wheel `miniwob` define them."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandboxgym.core.errors import DataNotFoundError, MissingDependencyError

Fields = tuple[tuple[str, str], ...]

# Tasks whose restored pages may go on otherwise than the original would, with the reason. Their
# environments say so in `fidelity`.
INEXACT: dict[str, str] = {}


@dataclass(frozen=True)
class Task:
    """One task.

    Attributes:
        name: As MiniWoB++ calls it: "click-test", "flight.Alaska".
        page: The path of its page.
        width: Of its window, in pixels.
        height: Of its window, in pixels.
    """

    name: str
    page: str
    width: int
    height: int

    def fields(self, utterance: str) -> Fields:
        """What the utterance asks for, as pairs of key and value, where MiniWoB++ can tell."""
        extract = _extractors().get(self.name)
        try:
            found = extract(utterance) if extract is not None else ()
        except ValueError:  # a wording that MiniWoB++ has no pattern for
            found = ()
        return tuple((str(key), str(value)) for key, value in found)


def task(name: str) -> Task:
    """The task of a name.

    Raises:
        MissingDependencyError: The wheel is not installed.
        DataNotFoundError: There is no such task.
    """
    if name not in names():
        raise DataNotFoundError(
            f"MiniWoB++ has no task {name!r}; sandboxgym.sandboxes.browser.miniwob.tasks.names() "
            "are all there are"
        )
    kind, _, airline = name.partition(".")
    if airline:
        return Task(name, f"/{kind}/{airline}/wrapper.html", 600, 800)
    return Task(name, f"/miniwob/{name}.html", 500, 320)


@functools.cache
def names() -> tuple[str, ...]:
    """The names of all tasks.

    Raises:
        MissingDependencyError: The wheel is not installed.
    """
    pages = folder()
    small = [page.stem for page in (pages / "miniwob").glob("*.html")]
    flights = [f"flight.{page.parent.name}" for page in (pages / "flight").glob("*/wrapper.html")]
    return (*sorted(small), *sorted(flights))


@functools.cache
def folder() -> Path:
    """Where the wheel keeps its pages.

    Raises:
        MissingDependencyError: The wheel is not installed.
    """
    try:
        wheel = importlib.metadata.distribution("miniwob")
    except importlib.metadata.PackageNotFoundError as error:
        raise MissingDependencyError(
            'the pages of MiniWoB++ are not installed: pip install "sandboxgym[miniwob]"'
        ) from error
    return Path(str(wheel.locate_file("miniwob/html")))


@functools.cache
def _extractors() -> dict[str, Any]:
    """What reads fields from utterances, by task.

    The module is loaded by its path: importing the package would register its environments, and a
    script of the user's that is called miniwob.py would be in its way.
    """
    path = folder().parent / "fields.py"
    spec = importlib.util.spec_from_file_location("sandboxgym_miniwob_fields", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    extractors: dict[str, Any] = module.FIELD_EXTRACTORS
    return extractors
