"""Python packages of the extras, and data that environments need."""

from __future__ import annotations

import importlib.metadata
import os
import re
from collections.abc import Sequence
from pathlib import Path

from sandboxgym.cli.doctor.finding import Finding, System

FOR_DEVELOPERS = ("dev", "docs")
GAMES = "json_2.1.1/*/*/*/game.tw-pddl"

_EXTRA = re.compile(r"extra == ['\"]([\w.-]+)['\"]")
_NAME = re.compile(r"[\w.-]+")


def extras(system: System) -> list[Finding]:
    """One finding for each extra of this package that brings others."""
    try:
        required = importlib.metadata.requires("sandboxgym") or []
    except importlib.metadata.PackageNotFoundError:
        what = "sandboxgym is not installed, so its extras are not known"
        return [Finding("extras", False, what, "pip install -e .")]
    return [extra(name, packages) for name, packages in by_extra(required).items()]


def by_extra(required: Sequence[str]) -> dict[str, list[str]]:
    """The packages of each extra, out of an installed package's requirements."""
    found: dict[str, list[str]] = {}
    for requirement in required:
        belongs, package = _EXTRA.search(requirement), _NAME.match(requirement)
        if belongs and package and package[0] != "sandboxgym":
            found.setdefault(belongs[1], []).append(package[0])
    return {name: packages for name, packages in found.items() if name not in FOR_DEVELOPERS}


def extra(name: str, packages: Sequence[str]) -> Finding:
    """Whether the packages of an extra are installed; none is imported."""
    there, missing = [], []
    for package in packages:
        try:
            there.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            missing.append(package)
    title = f"sandboxgym[{name}]"
    if missing:
        what = f"not installed: {', '.join(missing)}"
        return Finding(title, False, what, f'pip install "{title}"')
    return Finding(title, True, ", ".join(there))


def alfworld_data(system: System) -> Finding:
    """The folder with ALFWorld's own games; without it, they are generated."""
    named = os.environ.get("ALFWORLD_DATA")
    folder = Path(named or "~/.cache/alfworld").expanduser()
    if next(folder.glob(GAMES), None) is not None:
        return Finding("alfworld-data", True, f"games in {folder}")
    what = f"no games in {folder}" + ("" if named else " (ALFWORLD_DATA is not set)")
    return Finding(
        "alfworld-data",
        False,
        f"{what}; generated houses are used instead",
        "pip install alfworld && alfworld-download",
    )
