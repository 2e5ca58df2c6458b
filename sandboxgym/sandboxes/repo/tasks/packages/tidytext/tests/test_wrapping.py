import unittest

from tidytext import fill, justify, paragraphs, wrap


class ParagraphsTest(unittest.TestCase):
    def test_lines_are_joined(self):
        self.assertEqual(paragraphs("one\n two \nthree"), ["one two three"])

    def test_blank_lines_part(self):
        self.assertEqual(paragraphs("one\n\n  \ntwo\nthree\n"), ["one", "two three"])

    def test_nothing(self):
        self.assertEqual(paragraphs("\n \n"), [])


class WrapTest(unittest.TestCase):
    def test_short_text_is_one_line(self):
        self.assertEqual(wrap("hello world", 20), ["hello world"])

    def test_breaks_between_words(self):
        self.assertEqual(wrap("the quick brown fox", 10), ["the quick", "brown fox"])

    def test_line_may_be_full(self):
        self.assertEqual(wrap("abc def", 7), ["abc def"])
        self.assertEqual(wrap("abc def", 6), ["abc", "def"])

    def test_white_space_is_one_blank(self):
        self.assertEqual(wrap("a\t b\n\nc", 10), ["a b c"])

    def test_long_word_is_broken(self):
        self.assertEqual(wrap("abcdefgh", 3), ["abc", "def", "gh"])

    def test_long_word_starts_on_its_own_line(self):
        self.assertEqual(wrap("x abcdefgh y", 4), ["x", "abcd", "efgh", "y"])

    def test_prefixes(self):
        lines = wrap("one two three", 8, first="* ", rest="  ")
        self.assertEqual(lines, ["* one", "  two", "  three"])

    def test_prefix_counts(self):
        self.assertEqual(wrap("aa bb", 6, first="> ", rest="> "), ["> aa", "> bb"])

    def test_prefix_of_broken_word(self):
        self.assertEqual(wrap("abcdef", 4, rest=".."), ["abcd", "..ef"])

    def test_nothing(self):
        self.assertEqual(wrap("  ", 5, first="* "), [])

    def test_no_room(self):
        with self.assertRaises(ValueError):
            wrap("a", 2, rest="  ")


class FillTest(unittest.TestCase):
    def test_paragraphs_stay_apart(self):
        self.assertEqual(fill("a b\nc\n\nd", 3), "a b\nc\n\nd")


class JustifyTest(unittest.TestCase):
    def test_even(self):
        self.assertEqual(justify("a b c", 9), "a   b   c")

    def test_odd_blanks_go_left(self):
        self.assertEqual(justify("a b c", 8), "a   b  c")

    def test_single_word(self):
        self.assertEqual(justify(" word ", 10), "word")

    def test_too_long(self):
        self.assertEqual(justify("aaa bbb", 4), "aaa bbb")

    def test_two_words(self):
        self.assertEqual(justify("a b", 5), "a   b")
