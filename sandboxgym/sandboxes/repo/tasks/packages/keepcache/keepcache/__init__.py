"""Caches that forget."""

from keepcache.aging import TTLCache
from keepcache.counting import Counts, hit_rate
from keepcache.lru import LRUCache
from keepcache.memo import memoized
from keepcache.weighing import WeightedCache

__all__ = ["Counts", "LRUCache", "TTLCache", "WeightedCache", "hit_rate", "memoized"]
