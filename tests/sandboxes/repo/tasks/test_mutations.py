"""Each kind of mistake is found where it can be made, and changes nothing else."""

from __future__ import annotations

import ast
import difflib

import pytest

from sandboxgym.sandboxes.repo.tasks.mutations import mutations
from sandboxgym.sandboxes.repo.tasks.shipped import PACKAGES


def found(body, kind, head="def f(a, b):"):
    """What a function would read with each mistake of a kind."""
    source = head + "\n" + "".join(f"    {line}\n" for line in body.split("\n"))
    texts = [mutation.of(source) for mutation in mutations(source) if mutation.kind == kind]
    return {"\n".join(line.strip() for line in text.splitlines()[1:]) for text in texts}


@pytest.mark.parametrize(
    ("kind", "body", "mistakes"),
    [
        ("comparison", "return a < b", {"return a <= b", "return a > b"}),
        ("comparison", "return (a) not  in (b)", {"return (a) in (b)"}),
        ("comparison", "return a is None", {"return a is not None"}),
        ("boolean", "return a and b", {"return a or b"}),
        ("condition", "return a and b", {"return a", "return b"}),
        ("negation", "return not a", {"return a"}),
        ("arithmetic", "return a // b", {"return a % b"}),
        ("arithmetic", "a += b\nreturn a", {"a -= b\nreturn a"}),
        ("assignment", "a += b\nreturn a", {"a = b\nreturn a"}),
        ("off by one", "return a + 1", {"return a"}),
        ("off by one", "return a[b:]", {"return a[b + 1:]", "return a[b - 1:]"}),
        ("constant", "return 3", {"return 2", "return 4"}),
        ("constant", "return True", {"return False"}),
        ("function", "return min(a)", {"return max(a)"}),
        ("function", "return a.lstrip()", {"return a.rstrip()"}),
        ("arguments", "return g(a, b)", {"return g(b, a)"}),
        ("argument", "return g(a, key=b)", {"return g(a)"}),
        ("statement", "a.clear()\nreturn a", {"return a"}),
        ("statement", "if a:\n    b()\nreturn a", {"if a:\npass\nreturn a"}),
        ("statement", "if a:\n    return b\nreturn a", {"return a"}),
        ("variable", "c, d = b\nreturn c", {"c, d = b\nreturn d"}),
    ],
)
def test_mistakes(kind, body, mistakes):
    assert found(body, kind) == mistakes


def test_variables_of_the_same_type_are_mixed_up():
    head = "def f(a: int, b: int, c: str):"
    assert found("return a", "variable", head) == {"return b"}
    assert found("return c", "variable", head) == set()


def test_arguments_of_different_types_are_not():
    assert found("return g(a, b)", "arguments", "def f(a: int, b: str):") == set()
    assert found("return g(a, 1)", "arguments") == set()


def test_defaults():
    source = "def f(a=2, *, b=True):\n    return a\n"
    texts = {mutation.of(source).split("\n")[0] for mutation in mutations(source)}
    assert texts == {"def f(a=1, *, b=True):", "def f(a=3, *, b=True):", "def f(a=2, *, b=False):"}


def test_names_of_functions():
    source = (
        "class A:\n    def f(self):\n        def g():\n            return 1\n        return g\n"
    )
    assert {mutation.function for mutation in mutations(source)} == {"A.f"}


def test_what_is_not_ascii_counts_by_characters():
    source = 'def f(a, b):\n    return "äöü€𝄞", a < b\n'
    assert 'def f(a, b):\n    return "äöü€𝄞", a <= b\n' in {m.of(source) for m in mutations(source)}


def test_other_ends_of_lines_stay():
    source = 'def f(a):\r\n    """A\x0cB"""\r\n    return a + 1\r\n'
    texts = [mutation.of(source) for mutation in mutations(source) if mutation.kind == "off by one"]
    assert texts == ['def f(a):\r\n    """A\x0cB"""\r\n    return a\r\n']


def test_strings_and_what_is_in_them_stay():
    assert mutations('def f(a):\n    """Gives a + 1."""\n    return f"{a + 1:>3}"\n') == []


def test_comments_between_operands_are_left_alone():
    assert found("return (a  # < b\n    < b)", "comparison") == set()


def test_outside_of_functions_nothing_is_changed():
    assert mutations("LIMIT = 3\n\nclass A:\n    size = 4\n") == []


@pytest.mark.parametrize("path", sorted(PACKAGES.glob("*/*/[a-z]*.py")), ids=lambda path: path.name)
def test_one_place_changes_and_the_rest_stays(path):
    source = path.read_text(encoding="utf-8")
    if "tests" in path.parts:
        return
    for mutation in mutations(source):
        text = mutation.of(source)
        assert ast.dump(ast.parse(text)) != ast.dump(ast.parse(source)), mutation
        assert text.startswith(source[: mutation.start])
        assert text.endswith(source[mutation.end :])
        codes = difflib.SequenceMatcher(None, source.split("\n"), text.split("\n")).get_opcodes()
        assert len([code for code in codes if code[0] != "equal"]) <= 2
