import unittest

from rowfile import guess_delimiter, guess_type, sort_rows, to_records, totals


class DelimiterTest(unittest.TestCase):
    def test_equally_often(self):
        self.assertEqual(guess_delimiter("a;b,c\nd;e\nf;g,h,i"), ";")

    def test_most(self):
        self.assertEqual(guess_delimiter("a;b;c,d\ne;f;g,h"), ";")

    def test_empty_lines(self):
        self.assertEqual(guess_delimiter("a|b\n\nc|d\n"), "|")

    def test_nothing_fits(self):
        self.assertEqual(guess_delimiter("abc"), ",")
        self.assertEqual(guess_delimiter(""), ",")


class RecordsTest(unittest.TestCase):
    def test_records(self):
        rows = [["name", "n"], ["ham", "9"], ["egg", "10"]]
        self.assertEqual(to_records(rows), [{"name": "ham", "n": "9"}, {"name": "egg", "n": "10"}])

    def test_missing(self):
        self.assertEqual(
            to_records([["a", "b", "c"], ["1"]], missing="-"), [{"a": "1", "b": "-", "c": "-"}]
        )

    def test_too_much(self):
        self.assertEqual(to_records([["a"], ["1", "2"]]), [{"a": "1"}])

    def test_same_name(self):
        with self.assertRaises(ValueError):
            to_records([["a", "b", "a"]])

    def test_nothing(self):
        self.assertEqual(to_records([]), [])


class TypeTest(unittest.TestCase):
    def test_int(self):
        self.assertIs(guess_type(["1", "-2", ""]), int)

    def test_float(self):
        self.assertIs(guess_type(["1", "2.5"]), float)

    def test_str(self):
        self.assertIs(guess_type(["1", "x"]), str)

    def test_nothing(self):
        self.assertIs(guess_type(["", ""]), str)


class SortTest(unittest.TestCase):
    def test_numbers(self):
        self.assertEqual(sort_rows([["n"], ["10"], ["9"]], 0), [["n"], ["9"], ["10"]])

    def test_text(self):
        self.assertEqual(sort_rows([["n"], ["b"], ["a"], ["10"]], 0), [["n"], ["10"], ["a"], ["b"]])

    def test_reverse(self):
        rows = [["x", "1"], ["y", "3"], ["z", "2"]]
        self.assertEqual(
            sort_rows(rows, 1, reverse=True, header=False), [rows[1], rows[2], rows[0]]
        )

    def test_empty_comes_last(self):
        rows = [["n"], [""], ["2"], ["1"]]
        self.assertEqual(sort_rows(rows, 0), [["n"], ["1"], ["2"], [""]])
        self.assertEqual(sort_rows(rows, 0, reverse=True), [["n"], ["2"], ["1"], [""]])

    def test_rows_stay(self):
        rows = [["n"], ["2"], ["1"]]
        sort_rows(rows, 0)
        self.assertEqual(rows, [["n"], ["2"], ["1"]])


class TotalsTest(unittest.TestCase):
    def test_sums(self):
        rows = [["name", "n", "price"], ["ham", "2", "1.5"], ["egg", "3", ""]]
        self.assertEqual(totals(rows), [None, 5, 1.5])

    def test_short_rows(self):
        self.assertEqual(totals([["a", "b"], ["1", "2"], ["3"]]), [4, 2])
