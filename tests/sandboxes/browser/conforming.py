"""The browser on its site: `sandboxgym check tests.sandboxes.browser.conforming:make_env`."""

from __future__ import annotations

from sandboxgym.sandboxes.browser.env import BrowserEnv
from tests.sandboxes.browser.site import TestSite


def make_env() -> BrowserEnv:
    return BrowserEnv(TestSite, start="/chance", goal="Look around.")
