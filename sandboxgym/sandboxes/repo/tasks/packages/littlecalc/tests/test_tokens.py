import unittest

from littlecalc import CalcError, tokenize


def texts(formula):
    return [token.text for token in tokenize(formula)]


class TokenizeTest(unittest.TestCase):
    def test_kinds(self):
        kinds = [token.kind for token in tokenize("a1 + 2.5")]
        self.assertEqual(kinds, ["name", "operator", "number", "end"])

    def test_without_blanks(self):
        self.assertEqual(texts("1+x*(2-y)"), ["1", "+", "x", "*", "(", "2", "-", "y", ")", ""])

    def test_longest_operator(self):
        self.assertEqual(texts("a**b//c<=d"), ["a", "**", "b", "//", "c", "<=", "d", ""])

    def test_points(self):
        self.assertEqual(texts("1.5 .5 2."), ["1.5", ".5", "2.", ""])

    def test_two_points(self):
        self.assertEqual(texts("1.2.3"), ["1.2", ".3", ""])

    def test_names(self):
        self.assertEqual(texts("_a b_2 c3d"), ["_a", "b_2", "c3d", ""])

    def test_positions(self):
        self.assertEqual([token.position for token in tokenize("ab  + 1")], [0, 4, 6, 7])

    def test_unknown_character(self):
        with self.assertRaisesRegex(CalcError, "unexpected '\\$' at column 3"):
            tokenize("1 $ 2")

    def test_point_alone(self):
        with self.assertRaises(CalcError):
            tokenize("1 + .")
