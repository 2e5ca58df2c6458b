import unittest

from keepcache import Counts, hit_rate, memoized
from keepcache.memo import make_key


class MemoizedTest(unittest.TestCase):
    def setUp(self):
        self.calls = []

    def test_called_once(self):
        @memoized()
        def double(number):
            self.calls.append(number)
            return 2 * number

        self.assertEqual([double(2), double(2), double(3)], [4, 4, 6])
        self.assertEqual(self.calls, [2, 3])

    def test_name_stays(self):
        @memoized()
        def double(number):
            return 2 * number

        self.assertEqual(double.__name__, "double")

    def test_size(self):
        @memoized(size=1)
        def same(number):
            self.calls.append(number)
            return number

        same(1)
        same(2)
        same(1)
        self.assertEqual(self.calls, [1, 2, 1])

    def test_none_is_remembered(self):
        @memoized()
        def nothing():
            self.calls.append(0)

        nothing()
        nothing()
        self.assertEqual(len(self.calls), 1)

    def test_none_is_not_kept(self):
        @memoized(keep_none=False)
        def nothing():
            self.calls.append(0)

        nothing()
        nothing()
        self.assertEqual(len(self.calls), 2)

    def test_other_results_are_kept(self):
        @memoized(keep_none=False)
        def zero():
            self.calls.append(0)
            return 0

        zero()
        zero()
        self.assertEqual(len(self.calls), 1)

    def test_ignored_arguments(self):
        @memoized(ignore=("verbose",))
        def same(number, verbose=False):
            self.calls.append(number)
            return number

        same(1, verbose=True)
        same(1)
        self.assertEqual(self.calls, [1])


class KeyTest(unittest.TestCase):
    def test_order_of_names_does_not_matter(self):
        self.assertEqual(make_key((), {"a": 1, "b": 2}), make_key((), {"b": 2, "a": 1}))

    def test_values_matter(self):
        self.assertNotEqual(make_key((1,), {}), make_key((2,), {}))
        self.assertNotEqual(make_key((), {"a": 1}), make_key((), {"a": 2}))


class HitRateTest(unittest.TestCase):
    def test_share(self):
        self.assertEqual(hit_rate(Counts(hits=3, misses=1)), 0.75)

    def test_nothing_yet(self):
        self.assertEqual(hit_rate(Counts()), 0)
