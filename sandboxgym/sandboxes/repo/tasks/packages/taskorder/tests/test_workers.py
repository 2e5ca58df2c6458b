import unittest

from taskorder import assign, balance


class BalanceTest(unittest.TestCase):
    def test_longest_first(self):
        shares = balance({"a": 1, "b": 7, "c": 4, "d": 3}, 2)
        self.assertEqual(shares, [["b", "a"], ["c", "d"]])

    def test_equal_ones_by_name(self):
        self.assertEqual(balance({"b": 2, "a": 2, "c": 2}, 2), [["a", "c"], ["b"]])

    def test_more_workers_than_tasks(self):
        self.assertEqual(balance({"a": 1}, 3), [["a"], [], []])

    def test_single_worker(self):
        self.assertEqual(balance({"a": 1, "b": 2}, 1), [["b", "a"]])

    def test_nobody(self):
        with self.assertRaises(ValueError):
            balance({"a": 1}, 0)


class AssignTest(unittest.TestCase):
    def test_one_after_another(self):
        table = assign({"b": ["a"]}, {"a": 3, "b": 2})
        self.assertEqual(table, [("a", 0, 0), ("b", 0, 3)])

    def test_at_the_same_time(self):
        table = assign({"a": [], "b": []}, {"a": 3, "b": 2}, workers=2)
        self.assertEqual(table, [("a", 0, 0), ("b", 1, 0)])

    def test_waits_for_what_comes_before(self):
        table = assign({"c": ["a"], "b": []}, {"a": 5, "b": 1, "c": 1}, workers=2)
        self.assertEqual(table, [("a", 0, 0), ("b", 1, 0), ("c", 0, 5)])

    def test_who_is_free_first(self):
        table = assign({"a": [], "b": [], "c": []}, {"a": 5, "b": 2, "c": 1}, workers=2)
        self.assertEqual(table[2], ("c", 1, 2))

    def test_single_worker_is_usual(self):
        table = assign({"a": [], "b": []}, {"a": 1, "b": 1})
        self.assertEqual(table[1], ("b", 0, 1))

    def test_nobody(self):
        with self.assertRaises(ValueError):
            assign({}, {}, workers=0)
