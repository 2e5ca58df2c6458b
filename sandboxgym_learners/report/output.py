"""Where the page is written: a file of its own, or the index of a folder."""

from __future__ import annotations

from pathlib import Path

from sandboxgym.core.errors import SandboxGymError
from sandboxgym_learners.runlog import write_atomically

MARK = "<title>Training report</title>"
"""What every page of ours has near its beginning."""


class ReportError(SandboxGymError, OSError):
    """The page cannot be written where it should be."""


def page_path(out: Path) -> Path:
    """The file that `out` means: itself if it ends in .html, else index.html in that folder."""
    if out.suffix.lower() in (".html", ".htm") and not out.is_dir():
        return out
    return out / "index.html"


def require_place(path: Path) -> None:
    """Make the folder of a page; refuse a place that cannot take it, or that holds something else.

    Raises:
        ReportError: The folder is a file or cannot be made, or a file of others would be lost.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ReportError(
            f"the page cannot be written to {path}: {error.strerror or error}. Give a folder as "
            "--out, or a file that ends in .html"
        ) from error
    if path.is_file() and not _is_ours(path):
        raise ReportError(f"{path} is there already and is no report: give another --out")


def write_page(path: Path, text: str) -> None:
    """Write the page, whole or not at all.

    Raises:
        ReportError: The disk is full, or writing is not allowed there.
    """
    try:
        write_atomically(path, text.encode("utf-8"))
    except OSError as error:
        raise ReportError(f"{path} cannot be written: {error.strerror or error}") from error


def _is_ours(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return MARK.encode() in file.read(4096)
    except OSError as error:
        raise ReportError(f"{path} cannot be written: {error.strerror or error}") from error
