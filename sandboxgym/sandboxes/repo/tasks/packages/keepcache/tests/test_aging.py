import unittest

from keepcache import TTLCache


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


class TTLCacheTest(unittest.TestCase):
    def setUp(self):
        self.clock = Clock()
        self.cache = TTLCache(10, clock=self.clock)

    def test_lives(self):
        self.cache.put("a", 1)
        self.clock.now += 9.9
        self.assertEqual(self.cache.get("a"), 1)

    def test_ends(self):
        self.cache.put("a", 1)
        self.clock.now += 10
        self.assertEqual(self.cache.get("a", "gone"), "gone")

    def test_never_there(self):
        self.assertIsNone(self.cache.get("a"))

    def test_own_time(self):
        self.cache.put("a", 1, seconds=2)
        self.cache.put("b", 2, seconds=20)
        self.clock.now += 15
        self.assertIsNone(self.cache.get("a"))
        self.assertEqual(self.cache.get("b"), 2)

    def test_no_time_at_all(self):
        self.cache.put("a", 1, seconds=0)
        self.assertIsNone(self.cache.get("a"))

    def test_put_starts_anew(self):
        self.cache.put("a", 1)
        self.clock.now += 8
        self.cache.put("a", 2)
        self.clock.now += 8
        self.assertEqual(self.cache.get("a"), 2)

    def test_length(self):
        self.cache.put("a", 1)
        self.cache.put("b", 1, seconds=5)
        self.assertEqual(len(self.cache), 2)
        self.clock.now += 5
        self.assertEqual(len(self.cache), 1)

    def test_reading_does_not_renew(self):
        self.cache.put("a", 1)
        self.clock.now += 6
        self.cache.get("a")
        self.clock.now += 6
        self.assertIsNone(self.cache.get("a"))

    def test_reading_renews(self):
        cache = TTLCache(10, clock=self.clock, renew=True)
        cache.put("a", 1)
        for _ in range(3):
            self.clock.now += 6
            self.assertEqual(cache.get("a"), 1)

    def test_reading_renews_for_the_own_time(self):
        cache = TTLCache(10, clock=self.clock, renew=True)
        cache.put("a", 1, seconds=4)
        self.clock.now += 3
        cache.get("a")
        self.assertEqual(cache.left("a"), 4)

    def test_left(self):
        self.cache.put("a", 1)
        self.clock.now += 4
        self.assertEqual(self.cache.left("a"), 6)
        self.clock.now += 10
        self.assertEqual(self.cache.left("a"), 0)
        self.assertEqual(self.cache.left("x"), 0)

    def test_touch(self):
        self.cache.put("a", 1, seconds=5)
        self.clock.now += 4
        self.assertTrue(self.cache.touch("a"))
        self.assertEqual(self.cache.left("a"), 5)

    def test_touch_with_another_time(self):
        self.cache.put("a", 1)
        self.assertTrue(self.cache.touch("a", 30))
        self.assertEqual(self.cache.left("a"), 30)
        self.assertEqual(self.cache.get("a"), 1)

    def test_touch_comes_too_late(self):
        self.cache.put("a", 1)
        self.clock.now += 10
        self.assertFalse(self.cache.touch("a"))
        self.assertFalse(self.cache.touch("x"))

    def test_purge(self):
        self.cache.put("a", 1)
        self.cache.put("b", 1, seconds=3)
        self.clock.now += 3
        self.assertEqual(self.cache.purge(), ["b"])
        self.assertEqual(self.cache.purge(), [])
        self.assertEqual(self.cache.get("a"), 1)
