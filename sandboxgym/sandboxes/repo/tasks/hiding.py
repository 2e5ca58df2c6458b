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

    def gone(body: list[ast.stmt], prefix: tuple[str, ...]) -> list[ast.stmt]:
        """What goes of the statements of a module or a class."""
        leaving: list[ast.stmt] = []
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                path = (*prefix, node.name)
                if path in names:
                    found.add(path)
                    leaving.append(node)
            elif isinstance(node, ast.ClassDef):
                of_class = gone(node.body, (*prefix, node.name))
                leaving += [node] if len(of_class) == len(node.body) else of_class
        return leaving

    leaving = gone(ast.parse(text).body, ())
    if found != names:
        return None
    spans = []
    for node in leaving:
        decorators = getattr(node, "decorator_list", [])
        assert node.end_lineno is not None
        spans.append((min([node.lineno, *(one.lineno for one in decorators)]), node.end_lineno))
    for first, end in sorted(spans, reverse=True):
        while end < len(lines) and not lines[end].strip():
            end += 1  # The blank lines behind go too; those before part what is left.
        del lines[first - 1 : end]
    return "".join(lines).rstrip("\n") + "\n"
