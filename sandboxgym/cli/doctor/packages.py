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

_MARKER = re.compile(r"extra == ['\"]([\w.-]+)['\"]")
_REQUIREMENT = re.compile(r"([\w.-]+)\s*(?:\[([\w.,\s-]+)\])?")


def extras(system: System) -> list[Finding]:
    """One finding for each extra of this package that brings others."""
    try:
        metadata = importlib.metadata.metadata("sandboxgym")
    except importlib.metadata.PackageNotFoundError:
        what = "sandboxgym is not installed, so its extras are not known"
        return [Finding("extras", False, what, "pip install -e .")]
    names = [
        name for name in metadata.get_all("Provides-Extra") or () if name not in FOR_DEVELOPERS
    ]
    return [
        extra(name, sorted(packages)) for name in names if (packages := brought("sandboxgym", name))
    ]


def brought(package: str, name: str) -> set[str]:
    """The packages that an extra of an installed package brings, with those of their extras."""
    try:
        requirements = importlib.metadata.requires(package) or []
    except importlib.metadata.PackageNotFoundError:
        return set()
    found: set[str] = set()
    for requirement in requirements:
        marker, parts = _MARKER.search(requirement), _REQUIREMENT.match(requirement)
        if marker and parts and _same(marker[1], name):
            found |= {parts[1]} - {package}
            for nested in filter(None, (parts[2] or "").split(",")):
                found |= brought(parts[1], nested.strip())
    return found


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


def _same(left: str, right: str) -> bool:
    """Whether two names of an extra are spellings of one."""
    return re.sub(r"[-_.]+", "-", left).lower() == re.sub(r"[-_.]+", "-", right).lower()


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
