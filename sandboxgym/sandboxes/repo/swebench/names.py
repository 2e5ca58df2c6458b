"""Under which names a row may know a test.

Names in rows are what a parser once cut out of a log, so they are often less than the whole name:
cut at the first blank (`test_a[x` for `test_a[x y]`), without the folders of a path that is a
parameter, or the first line of a docstring. Whole names are turned into all that they may be cut
to; where one cut name stands for several tests, all of them count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from sandboxgym.sandboxes.repo.swebench.status import Results, Status, worst

_PROGRESS = re.compile(r"\[\s*\d+%\]")
_WITH_PATH = re.compile(r"(?P<test>[^\[]*)\[/(?!/)(?P<path>[^*]*)\]")
_WITH_METHOD = re.compile(r"(?P<method>\w+) \((?P<case>[\w.<>]+)\.(?P=method)\)")


def is_test(name: str) -> bool:
    """Whether a name of a row is one of a test; a few are pieces of a log, such as `[100%]`."""
    return _PROGRESS.fullmatch(name) is None


def known_as(name: str) -> set[str]:
    """All names that rows may have for a test, its own one included."""
    names = {name}
    if "::" in name:
        words = name.split()
        short = words[0] if words else name
        names.update((short, _short_path(short), _plain_buttons(short)))
    method = _WITH_METHOD.fullmatch(name)
    if method is not None:  # Since Python 3.11 a test's name has its method twice.
        names.add(f"{method['method']} ({method['case']})")
    if ".py::test_" in name and name.count("::") == 1:  # SymPy's names come without a file.
        names.add(name.partition("::")[2])
    return names


def looked_up(expected: Iterable[str], results: Results) -> dict[str, Status | None]:
    """The status of each expected test; None for one that nothing was heard of."""
    by_name: dict[str, list[Status]] = {}
    for name, status in results.items():
        for known in known_as(name):
            by_name.setdefault(known, []).append(status)
    found: dict[str, Status | None] = {}
    for name in expected:
        statuses = [results[name]] if name in results else by_name.get(name)
        found[name] = worst(statuses) if statuses else None
    return found


def _short_path(name: str) -> str:
    matched = _WITH_PATH.fullmatch(name)
    if matched is None:
        return name
    return f"{matched['test']}[/{matched['path'].rpartition('/')[2]}]"


def _plain_buttons(name: str) -> str:
    """Matplotlib's enumeration of mouse buttons was once shown by its values."""
    return name.replace("MouseButton.LEFT", "1").replace("MouseButton.RIGHT", "3")
