"""The conformance suite on WebShop; a minute, so it is run apart."""

from __future__ import annotations

import gymnasium as gym
import pytest

from sandboxgym.conformance import ForkableContract


@pytest.mark.slow
class TestWebShop(ForkableContract):
    seeds = (0, 1)

    def make_env(self):
        return gym.make("sandboxgym/WebShop-v0", num_prev_obs=1, num_prev_actions=1)
