"""The conformance suite on both faces of WebShop; minutes, so it is run apart."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest

from sandboxgym.conformance import ForkableContract


@pytest.mark.slow
class TestWebShop(ForkableContract):
    seeds = (0, 1)

    def make_env(self) -> Any:
        return gym.make("sandboxgym/WebShop-v0", num_prev_obs=1, num_prev_actions=1)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("browser")
class TestWebShopBrowser(ForkableContract):
    seeds = (0,)
    depth = 3
    actions = "browser"

    def make_env(self) -> Any:
        return gym.make("sandboxgym/WebShopBrowser-v0", actions=self.actions)


class TestWebShopBrowserByItsTexts(TestWebShopBrowser):
    actions = "webshop"
