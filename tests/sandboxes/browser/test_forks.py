"""A short version of `benchmarks/browser_forks.py`."""

from collections import defaultdict

import pytest

from benchmarks.browser_forks import PAGES, episode
from sandboxgym.sandboxes.browser.env import BrowserEnv
from tests.sandboxes.browser.site import TestSite


@pytest.mark.slow
def test_random_trips_are_exact(browser):
    env = BrowserEnv(TestSite)
    try:
        for seed, page in enumerate(PAGES[::4]):
            for result, why in episode(env, page, 500 + seed, 2, defaultdict(list)):
                assert result in ("exact", "replayed"), why
    finally:
        env.close()
