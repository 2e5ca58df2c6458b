"""Takes tests out of test files, as a repository has no tests yet for a bug that nobody knew."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

_UNITTEST = re.compile(r"(?P<method>\w+) \((?P<case>[\w.]+)\)")


def hide(tree: Path, tests: Iterable[str]) -> dict[str, str] | None:
    """Test files without some of their tests.

    Args:
        tree: The repository, which is only read.
        tests: By the names that rows have for them.

    Returns:
        The new text of each file that changes; None where one of the tests is not where its name
        says it is, such as one that a class inherits.
    """
    wanted: dict[str, set[tuple[str, ...]]] = {}
    for test in tests:
        place = _place(tree, test)
        if place is None:
            return None
        wanted.setdefault(place[0], set()).add(place[1])
    texts = {}
    for file, names in wanted.items():
        text = _without((tree / file).read_text(encoding="utf-8"), names)
        if text is None:
            return None
        texts[file] = text
    return texts


def _place(tree: Path, test: str) -> tuple[str, tuple[str, ...]] | None:
    """The file of a test, and the classes and the function that lead to it there."""
    unittest = _UNITTEST.fullmatch(test)
    if unittest is not None:
        parts = unittest["case"].split(".")
        for length in range(len(parts) - 1, 0, -1):
            file = str(PurePosixPath(*parts[:length]).with_suffix(".py"))
            if (tree / file).is_file():
                return file, (*parts[length:], unittest["method"])
        return None
    file, _, rest = test.partition("::")
    names = tuple(rest.partition("[")[0].split("::"))
    return (file, names) if rest and (tree / file).is_file() else None


def _without(text: str, names: set[tuple[str, ...]]) -> str | None:
    """A module without some functions; classes that have nothing left go as well."""
    lines = text.splitlines(keepends=True)
    found: set[tuple[str, ...]] = set()
    gone: list[tuple[int, int]] = []

    def leave_out(body: list[ast.stmt], prefix: tuple[str, ...]) -> bool:
        """Note down which lines go; says whether nothing is left."""
        left = len(body)
        for node in body:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            path = (*prefix, node.name)
            is_class = isinstance(node, ast.ClassDef)
            if path in names and not is_class:
                found.add(path)
            elif not (is_class and leave_out(node.body, path)):
                continue
            left -= 1
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            assert node.end_lineno is not None
            gone.append((first - 1, node.end_lineno))
        return left == 0

    leave_out(ast.parse(text).body, ())
    if found != names:
        return None
    for first, end in sorted(gone, reverse=True):
        while end < len(lines) and not lines[end].strip():
            end += 1  # The blank lines behind go too; those before part what is left.
        del lines[first:end]
    return "".join(lines).rstrip("\n") + "\n"
