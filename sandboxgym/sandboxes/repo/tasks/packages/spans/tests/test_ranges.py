import unittest

from spans import SpanSet, format_ranges, parse_ranges


class ParseTest(unittest.TestCase):
    def test_single_numbers(self):
        self.assertEqual(parse_ranges("3,5"), SpanSet([(3, 4), (5, 6)]))

    def test_range_has_its_end(self):
        self.assertEqual(parse_ranges("1-3"), SpanSet([(1, 4)]))

    def test_blanks(self):
        self.assertEqual(parse_ranges(" 1 - 2 , ,7 "), SpanSet([(1, 3), (7, 8)]))

    def test_open_range(self):
        self.assertEqual(parse_ranges("8-", last=10), SpanSet([(8, 11)]))

    def test_open_range_without_last(self):
        with self.assertRaisesRegex(ValueError, "'8-' is no range"):
            parse_ranges("8-")

    def test_no_number(self):
        with self.assertRaisesRegex(ValueError, "'x' is no range"):
            parse_ranges("1,x")

    def test_nothing(self):
        self.assertEqual(parse_ranges(""), SpanSet())


class FormatTest(unittest.TestCase):
    def test_single_number(self):
        self.assertEqual(format_ranges(SpanSet([(4, 5)])), "4")

    def test_two_are_no_range(self):
        self.assertEqual(format_ranges(SpanSet([(4, 6)])), "4,5")

    def test_range(self):
        self.assertEqual(format_ranges(SpanSet([(1, 4), (7, 8)])), "1-3,7")

    def test_there_and_back(self):
        for text in ("1", "1,2", "1-3", "1-3,5,8-10"):
            self.assertEqual(format_ranges(parse_ranges(text)), text)
