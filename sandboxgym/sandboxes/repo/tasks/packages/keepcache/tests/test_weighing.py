import unittest

from keepcache import WeightedCache


class WeightedCacheTest(unittest.TestCase):
    def setUp(self):
        self.cache = WeightedCache(10)
        self.cache.put("a", "xxxx")
        self.cache.put("b", "xxx")

    def test_weight(self):
        self.assertEqual(self.cache.weight, 7)

    def test_may_be_full(self):
        self.assertTrue(self.cache.put("c", "xxx"))
        self.assertEqual(self.cache.weight, 10)
        self.assertIn("a", self.cache)

    def test_least_used_goes(self):
        self.cache.get("a")
        self.cache.put("c", "xxxx")
        self.assertNotIn("b", self.cache)
        self.assertIn("a", self.cache)

    def test_first_of_those_used_as_little(self):
        self.cache.put("c", "xxxx")
        self.assertNotIn("a", self.cache)
        self.assertIn("b", self.cache)

    def test_as_many_as_needed(self):
        self.cache.put("c", "x" * 9)
        self.assertEqual([key for key in "abc" if key in self.cache], ["c"])
        self.assertEqual(self.cache.weight, 9)

    def test_too_heavy(self):
        self.assertFalse(self.cache.put("c", "x" * 11))
        self.assertEqual(self.cache.weight, 7)

    def test_exactly_the_capacity(self):
        self.assertTrue(self.cache.put("c", "x" * 10))

    def test_too_heavy_for_its_key(self):
        self.assertFalse(self.cache.put("a", "x" * 11))
        self.assertNotIn("a", self.cache)
        self.assertEqual(self.cache.weight, 3)

    def test_put_again(self):
        self.assertTrue(self.cache.put("a", "x"))
        self.assertEqual(self.cache.weight, 4)
        self.assertEqual(self.cache.get("a"), "x")

    def test_put_again_keeps_uses(self):
        self.cache.get("a")
        self.cache.put("a", "xxxx")
        self.cache.put("c", "xxxx")
        self.assertIn("a", self.cache)

    def test_remove(self):
        self.assertTrue(self.cache.remove("a"))
        self.assertFalse(self.cache.remove("a"))
        self.assertEqual(self.cache.weight, 3)

    def test_default(self):
        self.assertEqual(self.cache.get("x", 5), 5)

    def test_heaviest(self):
        self.cache.put("c", "x")
        self.assertEqual(self.cache.heaviest(), ["a"])
        self.assertEqual(self.cache.heaviest(2), ["a", "b"])

    def test_own_weights(self):
        cache = WeightedCache(10, weigh=lambda value: value)
        cache.put("a", 6)
        cache.put("b", 5)
        self.assertEqual(cache.weight, 5)
