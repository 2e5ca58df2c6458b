import unittest

from tidytext import align, table
from tidytext.tables import widths


class AlignTest(unittest.TestCase):
    def test_left_is_usual(self):
        self.assertEqual(align("ab", 4), "ab  ")

    def test_right(self):
        self.assertEqual(align("ab", 4, "right"), "  ab")

    def test_centre(self):
        self.assertEqual(align("ab", 6, "centre"), "  ab  ")

    def test_centre_odd(self):
        self.assertEqual(align("ab", 5, "centre"), " ab  ")

    def test_too_long(self):
        self.assertEqual(align("abcdef", 3, "right"), "abcdef")

    def test_unknown(self):
        with self.assertRaises(ValueError):
            align("a", 3, "middle")


class WidthsTest(unittest.TestCase):
    def test_widest_cell(self):
        self.assertEqual(widths([["a", "bbb"], ["cc", "d"]]), [2, 3])

    def test_rows_of_different_length(self):
        self.assertEqual(widths([["a"], ["b", "cc", "d"], []]), [1, 2, 1])


class TableTest(unittest.TestCase):
    def test_columns(self):
        self.assertEqual(table([["a", "b"], ["ccc", "d"]]), "a    b\nccc  d")

    def test_alignment(self):
        rows = [["ham", "9"], ["eggs", "10"]]
        self.assertEqual(table(rows, how=["left", "right"]), "ham    9\neggs  10")

    def test_header(self):
        text = table([["name", "n"], ["ham", "9"]], header=True)
        self.assertEqual(text, "name  n\n-------\nham   9")

    def test_gap(self):
        self.assertEqual(table([["a", "b", "c"]], gap=1, header=True), "a b c\n-----")

    def test_no_rows(self):
        self.assertEqual(table([], header=True), "")
