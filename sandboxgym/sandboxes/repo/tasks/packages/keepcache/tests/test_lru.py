import unittest

from keepcache import LRUCache


class LRUCacheTest(unittest.TestCase):
    def setUp(self):
        self.dropped = []
        self.cache = LRUCache(2, on_drop=lambda key, value: self.dropped.append((key, value)))
        self.cache.put("a", 1)
        self.cache.put("b", 2)

    def test_get(self):
        self.assertEqual(self.cache.get("a"), 1)

    def test_default(self):
        self.assertEqual(self.cache.get("x", 7), 7)
        self.assertIsNone(self.cache.get("x"))

    def test_oldest_goes(self):
        self.cache.put("c", 3)
        self.assertEqual(self.cache.keys(), ["c", "b"])

    def test_get_is_a_use(self):
        self.cache.get("a")
        self.cache.put("c", 3)
        self.assertNotIn("b", self.cache)
        self.assertIn("a", self.cache)

    def test_peek_is_no_use(self):
        self.assertEqual(self.cache.peek("a"), 1)
        self.cache.put("c", 3)
        self.assertNotIn("a", self.cache)

    def test_peek_counts_as_nothing(self):
        self.cache.peek("a")
        self.cache.peek("x")
        self.assertEqual((self.cache.counts.hits, self.cache.counts.misses), (0, 0))

    def test_put_again_is_a_use(self):
        self.cache.put("a", 10)
        self.cache.put("c", 3)
        self.assertEqual(self.cache.keys(), ["c", "a"])
        self.assertEqual(self.cache.get("a"), 10)

    def test_put_again_drops_nothing(self):
        self.cache.put("b", 5)
        self.assertEqual(self.dropped, [])

    def test_size_is_kept(self):
        self.cache.update((number, number) for number in range(10))
        self.assertEqual(len(self.cache), 2)
        self.assertEqual(self.cache.keys(), [9, 8])

    def test_on_drop(self):
        self.cache.put("c", 3)
        self.assertEqual(self.dropped, [("a", 1)])
        self.assertEqual(self.cache.counts.dropped, 1)

    def test_pop_is_no_drop(self):
        self.assertEqual(self.cache.pop("a"), 1)
        self.assertIsNone(self.cache.pop("a"))
        self.assertEqual(self.dropped, [])

    def test_smaller(self):
        self.cache.resize(1)
        self.assertEqual(self.cache.keys(), ["b"])
        self.assertEqual(self.dropped, [("a", 1)])

    def test_larger(self):
        self.cache.resize(3)
        self.cache.put("c", 3)
        self.assertEqual(len(self.cache), 3)

    def test_newest_keys(self):
        self.assertEqual(self.cache.keys(newest=1), ["b"])
        self.assertEqual(self.cache.keys(newest=0), [])

    def test_counts(self):
        self.cache.get("a")
        self.cache.get("a")
        self.cache.get("x")
        self.assertEqual((self.cache.counts.hits, self.cache.counts.misses), (2, 1))

    def test_no_room(self):
        with self.assertRaises(ValueError):
            LRUCache(0)
        with self.assertRaises(ValueError):
            self.cache.resize(0)
        self.assertEqual(len(LRUCache(1)), 0)
