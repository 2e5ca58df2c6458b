"""Tests are taken out of their files, and everything else stays."""

from __future__ import annotations

import pytest

from sandboxgym.sandboxes.repo.tasks.hiding import hide

CASES = '''\
import unittest


class FirstTest(unittest.TestCase):
    def setUp(self):
        self.one = 1

    def test_a(self):
        pass

    @unittest.skip("x")
    def test_b(self):
        pass

    def test_c(self):
        pass


class SecondTest(unittest.TestCase):
    def test_a(self):
        pass


class ThirdTest(FirstTest):
    """Inherits."""
'''
PLAIN = """\
import pytest


def helper():
    pass


@pytest.mark.parametrize("x", [1, 2])
def test_a(x):
    pass


class TestB:
    def test_c(self):
        pass

    def test_d(self):
        pass
"""


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_cases.py").write_text(CASES)
    (tmp_path / "tests/test_plain.py").write_text(PLAIN)
    return tmp_path


def test_a_method_goes(tree):
    texts = hide(tree, ["test_a (tests.test_cases.FirstTest)"])
    gone = "    def test_a(self):\n        pass\n\n    @unittest"
    assert texts == {"tests/test_cases.py": CASES.replace(gone, "    @unittest")}


def test_decorators_go_too(tree):
    texts = hide(tree, ["test_b (tests.test_cases.FirstTest)"])
    assert "skip" not in texts["tests/test_cases.py"]
    assert "def test_c" in texts["tests/test_cases.py"]


def test_a_class_with_nothing_left_goes(tree):
    text = hide(tree, ["test_a (tests.test_cases.SecondTest)"])["tests/test_cases.py"]
    assert "SecondTest" not in text
    assert text.count("def test_") == 3
    compile(text, "text", "exec")


def test_an_inherited_test_cannot_go(tree):
    assert hide(tree, ["test_a (tests.test_cases.ThirdTest)"]) is None


def test_a_test_elsewhere_cannot_go(tree):
    assert hide(tree, ["test_a (tests.test_others.FirstTest)"]) is None
    assert hide(tree, ["tests/test_others.py::test_a"]) is None


def test_tests_of_pytest(tree):
    names = ["tests/test_plain.py::test_a[1]", "tests/test_plain.py::TestB::test_d"]
    text = hide(tree, names)["tests/test_plain.py"]
    assert "test_a" not in text
    assert "parametrize" not in text
    assert "def helper" in text
    assert "def test_c" in text
    assert "test_d" not in text


def test_files_are_only_read(tree):
    hide(tree, ["test_a (tests.test_cases.FirstTest)"])
    assert (tree / "tests/test_cases.py").read_text() == CASES
