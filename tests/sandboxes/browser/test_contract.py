"""The conformance suite on the browser and on a task of MiniWoB++; minutes, so it is run apart."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest

from sandboxgym.conformance import ForkableContract
from tests.sandboxes.browser.conforming import make_env as make_browser


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("browser")
class TestBrowser(ForkableContract):
    seeds = (0,)
    depth = 3

    def make_env(self) -> Any:
        return make_browser()


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("browser")
class TestMiniWoB(ForkableContract):
    seeds = (0,)
    depth = 3

    def make_env(self) -> Any:
        return gym.make("sandboxgym/MiniWoB-v0", task="enter-text")
