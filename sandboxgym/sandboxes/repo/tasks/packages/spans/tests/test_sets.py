import unittest

from spans import SpanSet


class MakingTest(unittest.TestCase):
    def test_sorted(self):
        self.assertEqual(list(SpanSet([(5, 7), (1, 2)])), [(1, 2), (5, 7)])

    def test_overlapping_become_one(self):
        self.assertEqual(list(SpanSet([(1, 4), (3, 6)])), [(1, 6)])

    def test_touching_become_one(self):
        self.assertEqual(list(SpanSet([(1, 3), (3, 5)])), [(1, 5)])

    def test_one_within_another(self):
        self.assertEqual(list(SpanSet([(1, 10), (2, 3)])), [(1, 10)])

    def test_empty_ones_are_left_out(self):
        self.assertEqual(list(SpanSet([(2, 2), (4, 5)])), [(4, 5)])

    def test_backwards(self):
        with self.assertRaises(ValueError):
            SpanSet([(3, 1)])

    def test_repr(self):
        self.assertEqual(repr(SpanSet([(1, 2)])), "SpanSet([(1, 2)])")

    def test_equal(self):
        self.assertEqual(SpanSet([(1, 2), (2, 3)]), SpanSet([(1, 3)]))
        self.assertNotEqual(SpanSet([(1, 2)]), [(1, 2)])


class AskingTest(unittest.TestCase):
    def setUp(self):
        self.spans = SpanSet([(2, 4), (7, 8)])

    def test_contains(self):
        found = [number for number in range(10) if number in self.spans]
        self.assertEqual(found, [2, 3, 7])

    def test_size(self):
        self.assertEqual(self.spans.size(), 3)

    def test_length_is_number_of_spans(self):
        self.assertEqual(len(self.spans), 2)

    def test_gaps(self):
        self.assertEqual(self.spans.gaps(), SpanSet([(4, 7)]))

    def test_no_gaps(self):
        self.assertEqual(SpanSet([(1, 2)]).gaps(), SpanSet())


class CombiningTest(unittest.TestCase):
    def test_union(self):
        self.assertEqual(
            SpanSet([(1, 3)]).union(SpanSet([(2, 5), (9, 10)])), SpanSet([(1, 5), (9, 10)])
        )

    def test_intersection(self):
        mine = SpanSet([(1, 5), (8, 12)])
        theirs = SpanSet([(3, 9), (10, 11)])
        self.assertEqual(mine.intersection(theirs), SpanSet([(3, 5), (8, 9), (10, 11)]))

    def test_intersection_of_touching(self):
        self.assertEqual(SpanSet([(1, 3)]).intersection(SpanSet([(3, 5)])), SpanSet())

    def test_intersection_goes_both_ways(self):
        mine = SpanSet([(0, 2), (4, 20)])
        theirs = SpanSet([(1, 5), (6, 7), (19, 30)])
        common = SpanSet([(1, 2), (4, 5), (6, 7), (19, 20)])
        self.assertEqual(mine.intersection(theirs), common)
        self.assertEqual(theirs.intersection(mine), common)

    def test_difference_cuts_in_the_middle(self):
        self.assertEqual(
            SpanSet([(0, 10)]).difference(SpanSet([(3, 5)])), SpanSet([(0, 3), (5, 10)])
        )

    def test_difference_at_the_ends(self):
        self.assertEqual(SpanSet([(2, 8)]).difference(SpanSet([(0, 3), (7, 9)])), SpanSet([(3, 7)]))

    def test_difference_with_all(self):
        self.assertEqual(SpanSet([(2, 4)]).difference(SpanSet([(1, 5)])), SpanSet())

    def test_difference_with_touching(self):
        self.assertEqual(SpanSet([(2, 4)]).difference(SpanSet([(4, 5), (0, 2)])), SpanSet([(2, 4)]))


class MovingTest(unittest.TestCase):
    def test_shifted(self):
        self.assertEqual(SpanSet([(1, 3)]).shifted(-2), SpanSet([(-1, 1)]))

    def test_widened(self):
        self.assertEqual(SpanSet([(5, 6), (20, 22)]).widened(2), SpanSet([(3, 8), (18, 24)]))

    def test_widened_spans_become_one(self):
        self.assertEqual(SpanSet([(5, 6), (8, 9)]).widened(1), SpanSet([(4, 10)]))

    def test_widened_stops_at_zero(self):
        self.assertEqual(SpanSet([(1, 2)]).widened(5), SpanSet([(0, 7)]))
