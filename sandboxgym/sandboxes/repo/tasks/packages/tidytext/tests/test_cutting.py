import unittest

from tidytext import cut, cut_middle


class CutTest(unittest.TestCase):
    def test_short_text_stays(self):
        self.assertEqual(cut("hello", 5), "hello")

    def test_cut_at_blank(self):
        self.assertEqual(cut("the quick brown fox", 14), "the quick...")

    def test_whole_word_fits(self):
        self.assertEqual(cut("the quick brown fox", 12), "the quick...")

    def test_no_blank(self):
        self.assertEqual(cut("abcdefghij", 8), "abcde...")

    def test_other_mark(self):
        self.assertEqual(cut("one two three", 8, mark="~"), "one two~")

    def test_no_room(self):
        self.assertEqual(cut("abcdefgh", 2), "..")

    def test_never_too_long(self):
        for width in range(1, 20):
            self.assertLessEqual(len(cut("some words of a text", width)), width)


class CutMiddleTest(unittest.TestCase):
    def test_short_text_stays(self):
        self.assertEqual(cut_middle("a/b/c", 5), "a/b/c")

    def test_even(self):
        self.assertEqual(cut_middle("abcdefghijkl", 9), "abc...jkl")

    def test_odd(self):
        self.assertEqual(cut_middle("abcdefghijkl", 8), "ab...jkl")

    def test_no_room(self):
        self.assertEqual(cut_middle("abcdefgh", 3), "...")
        self.assertEqual(cut_middle("abcdefgh", 2), "..")

    def test_smallest(self):
        self.assertEqual(cut_middle("abcdefgh", 5), "a...h")
