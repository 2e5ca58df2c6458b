"""Waiting for what other processes bring about."""

from __future__ import annotations

import time


def wait_until(condition, seconds: float = 30.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come to that in time"
        time.sleep(0.02)
