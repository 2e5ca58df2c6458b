import unittest

from rowfile import Dialect, dump, parse, quote


class QuoteTest(unittest.TestCase):
    def check(self, field, written, **dialect):
        self.assertEqual(quote(field, Dialect(**dialect)), written)

    def test_not_needed(self):
        self.check("plain text", "plain text")

    def test_delimiter(self):
        self.check("a,b", '"a,b"')
        self.check("a,b", "a,b", delimiter=";")

    def test_quote(self):
        self.check('a"b', '"a""b"')

    def test_ends_of_lines(self):
        self.check("a\nb", '"a\nb"')
        self.check("a\rb", '"a\rb"')

    def test_blanks(self):
        self.check(" a", " a")
        self.check(" a", '" a"', trim=True)
        self.check("a b", "a b", trim=True)

    def test_comment(self):
        dialect = Dialect(comment="#")
        self.assertEqual(quote("#a", dialect, first=True), '"#a"')
        self.assertEqual(quote("#a", dialect), "#a")


class DumpTest(unittest.TestCase):
    def test_rows(self):
        self.assertEqual(dump([["a", "b"], ["c", "d"]]), "a,b\nc,d\n")

    def test_other_values(self):
        self.assertEqual(dump([[1, None, 2.5]]), "1,,2.5\n")

    def test_newline(self):
        self.assertEqual(dump([["a"], ["b"]], newline="\r\n"), "a\r\nb\r\n")

    def test_single_empty_field(self):
        self.assertEqual(dump([[""], ["a"]]), '""\na\n')

    def test_comment_only_at_the_start(self):
        self.assertEqual(dump([["#a", "#b"]], Dialect(comment="#")), '"#a",#b\n')

    def test_there_and_back(self):
        rows = [["a,b", 'c"d', ""], [""], ["x\ny", " z ", "#"]]
        for dialect in (Dialect(), Dialect(";", "'", "#", trim=True)):
            self.assertEqual(parse(dump(rows, dialect), dialect), rows)
