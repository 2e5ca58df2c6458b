import unittest

from taskorder import CycleError, ancestors, find_cycle, levels, order, reduced

BUILD = {
    "package": ["test", "docs"],
    "test": ["build"],
    "docs": ["build"],
    "build": ["fetch"],
}


class OrderTest(unittest.TestCase):
    def test_before(self):
        self.assertEqual(order(BUILD), ["fetch", "build", "docs", "test", "package"])

    def test_by_name(self):
        self.assertEqual(order({"b": [], "c": [], "a": []}), ["a", "b", "c"])

    def test_as_soon_as_possible(self):
        self.assertEqual(order({"a": ["z"], "m": []}), ["m", "z", "a"])

    def test_nothing(self):
        self.assertEqual(order({}), [])

    def test_cycle(self):
        with self.assertRaises(CycleError) as caught:
            order({"a": ["b"], "b": ["c"], "c": ["b"]})
        self.assertEqual(caught.exception.cycle, ["b", "c", "b"])
        self.assertEqual(str(caught.exception), "b -> c -> b")


class LevelsTest(unittest.TestCase):
    def test_steps(self):
        self.assertEqual(levels(BUILD), [["fetch"], ["build"], ["docs", "test"], ["package"]])

    def test_longest_way_counts(self):
        self.assertEqual(levels({"c": ["a", "b"], "b": ["a"]}), [["a"], ["b"], ["c"]])

    def test_as_early_as_it_can_be(self):
        self.assertEqual(levels({"b": ["a"], "c": []}), [["a", "c"], ["b"]])

    def test_nothing(self):
        self.assertEqual(levels({}), [])


class AncestorsTest(unittest.TestCase):
    def test_indirect(self):
        self.assertEqual(ancestors(BUILD, "test"), {"build", "fetch"})

    def test_none(self):
        self.assertEqual(ancestors(BUILD, "fetch"), set())

    def test_in_a_cycle(self):
        self.assertEqual(ancestors({"a": ["b"], "b": ["a"]}, "a"), {"a", "b"})


class CycleTest(unittest.TestCase):
    def test_found(self):
        self.assertEqual(find_cycle({"a": ["b"], "b": ["c"], "c": ["a"]}), ["a", "b", "c", "a"])

    def test_waits_for_itself(self):
        self.assertEqual(find_cycle({"a": ["a"]}), ["a", "a"])

    def test_not_at_the_start(self):
        self.assertEqual(find_cycle({"a": ["b"], "b": ["x", "c"], "c": ["b"]}), ["b", "c", "b"])

    def test_two_ways_are_none(self):
        self.assertEqual(find_cycle({"d": ["b", "c"], "b": ["a"], "c": ["a"]}), [])


class ReducedTest(unittest.TestCase):
    def test_what_follows_goes(self):
        self.assertEqual(reduced({"c": ["a", "b"], "b": ["a"]}), {"c": ["b"], "b": ["a"]})

    def test_needed_ones_stay(self):
        self.assertEqual(reduced(BUILD), {**BUILD, "package": ["docs", "test"]})

    def test_far_ones_go(self):
        self.assertEqual(reduced({"d": ["a", "c"], "c": ["b"], "b": ["a"]})["d"], ["c"])
