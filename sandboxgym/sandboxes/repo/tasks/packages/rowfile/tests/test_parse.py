import unittest

from rowfile import Dialect, RowError, parse


class PlainTest(unittest.TestCase):
    def test_rows(self):
        self.assertEqual(parse("a,b\nc,d\n"), [["a", "b"], ["c", "d"]])

    def test_last_line_without_newline(self):
        self.assertEqual(parse("a,b\nc"), [["a", "b"], ["c"]])

    def test_empty_fields(self):
        self.assertEqual(parse(",a,\n"), [["", "a", ""]])

    def test_empty_lines_are_no_rows(self):
        self.assertEqual(parse("a\n\n\nb\n"), [["a"], ["b"]])

    def test_ends_of_lines(self):
        self.assertEqual(parse("a,b\r\nc\rd\n"), [["a", "b"], ["c"], ["d"]])

    def test_blanks_are_kept(self):
        self.assertEqual(parse(" a , b\n"), [[" a ", " b"]])

    def test_nothing(self):
        self.assertEqual(parse(""), [])


class QuotesTest(unittest.TestCase):
    def test_delimiter(self):
        self.assertEqual(parse('"a,b",c\n'), [["a,b", "c"]])

    def test_quote_is_written_twice(self):
        self.assertEqual(parse('"say ""hi""",x\n'), [['say "hi"', "x"]])

    def test_newline(self):
        self.assertEqual(parse('"a\nb",c\nd\n'), [["a\nb", "c"], ["d"]])

    def test_empty(self):
        self.assertEqual(parse('"",x\n'), [["", "x"]])
        self.assertEqual(parse('""\n'), [[""]])

    def test_quote_within_a_field(self):
        self.assertEqual(parse('a"b,c\n'), [['a"b', "c"]])

    def test_never_closed(self):
        with self.assertRaisesRegex(RowError, "line 2: a quote is never closed"):
            parse('a\n"b\nc\n')

    def test_text_after_quote(self):
        with self.assertRaisesRegex(RowError, "line 1: text after a closing quote"):
            parse('"a"b,c\n')

    def test_lines_are_counted_in_quotes(self):
        with self.assertRaises(RowError) as caught:
            parse('"a\nb\nc"\n"d"e\n')
        self.assertEqual(caught.exception.line, 4)


class DialectTest(unittest.TestCase):
    def test_delimiter(self):
        self.assertEqual(parse("a;b,c\n", Dialect(delimiter=";")), [["a", "b,c"]])

    def test_long_delimiter(self):
        self.assertEqual(parse("a::b:c::\n", Dialect(delimiter="::")), [["a", "b:c", ""]])

    def test_quote(self):
        self.assertEqual(parse("'a,b',\"c\"\n", Dialect(quote="'")), [["a,b", '"c"']])

    def test_comments(self):
        text = "# first\na,b\n#c,d\ne,#f\n"
        self.assertEqual(parse(text, Dialect(comment="#")), [["a", "b"], ["e", "#f"]])

    def test_no_comments(self):
        self.assertEqual(parse("#a\n"), [["#a"]])

    def test_trim(self):
        self.assertEqual(parse(" a ,  b c \n", Dialect(trim=True)), [["a", "b c"]])

    def test_trim_leaves_quotes_alone(self):
        self.assertEqual(parse(' " a " , b\n', Dialect(trim=True)), [[" a ", "b"]])


class StrictTest(unittest.TestCase):
    def test_another_length(self):
        with self.assertRaisesRegex(RowError, "line 4: 1 fields and not 2"):
            parse("a,b\n\nc,d\ne\n", strict=True)

    def test_same_length(self):
        self.assertEqual(parse("a,b\nc,d\n", strict=True), [["a", "b"], ["c", "d"]])
