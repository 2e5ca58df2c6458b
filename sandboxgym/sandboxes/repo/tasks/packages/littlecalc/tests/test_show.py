import unittest

from littlecalc import parse, show


class ShowTest(unittest.TestCase):
    def check(self, formula, shown):
        self.assertEqual(show(parse(formula)), shown)

    def test_blanks(self):
        self.check("1+2*x", "1 + 2 * x")

    def test_needed_parentheses_stay(self):
        self.check("(1 + 2) * 3", "(1 + 2) * 3")

    def test_needless_parentheses_go(self):
        self.check("(1 * 2) + (3)", "1 * 2 + 3")

    def test_from_the_left(self):
        self.check("(1 - 2) - 3", "1 - 2 - 3")
        self.check("1 - (2 - 3)", "1 - (2 - 3)")

    def test_powers(self):
        self.check("2 ** (3 ** 2)", "2 ** 3 ** 2")
        self.check("(2 ** 3) ** 2", "(2 ** 3) ** 2")

    def test_signs(self):
        self.check("(-2) ** 2", "(-2) ** 2")
        self.check("-(2 ** 2)", "-2 ** 2")
        self.check("-(1 + 2)", "-(1 + 2)")

    def test_calls(self):
        self.check("max((1+2), x)", "max(1 + 2, x)")

    def test_comparison(self):
        self.check("(1 < 2) == (3 > 2)", "1 < 2 == 3 > 2")
