import unittest

from tidytext import dedent, indent, margin


class MarginTest(unittest.TestCase):
    def test_smallest_counts(self):
        self.assertEqual(margin("    a\n  b\n      c"), 2)

    def test_blank_lines_do_not_count(self):
        self.assertEqual(margin("  a\n\n \n  b"), 2)

    def test_nothing(self):
        self.assertEqual(margin(""), 0)


class DedentTest(unittest.TestCase):
    def test_common_margin_goes(self):
        self.assertEqual(dedent("  a\n    b\n"), "a\n  b\n")

    def test_blank_lines_become_empty(self):
        self.assertEqual(dedent("  a\n      \n  b"), "a\n\nb")

    def test_no_newline_is_added(self):
        self.assertEqual(dedent("  a"), "a")


class IndentTest(unittest.TestCase):
    def test_every_line(self):
        self.assertEqual(indent("a\nb\n", "> "), "> a\n> b\n")

    def test_not_lines_without_text(self):
        self.assertEqual(indent("a\n\nb", "  "), "  a\n\n  b")

    def test_all_lines(self):
        self.assertEqual(indent("a\n\nb", "> ", empty=True), "> a\n> \n> b")
