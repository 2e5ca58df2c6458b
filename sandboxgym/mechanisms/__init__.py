"""Ways to make an environment forkable, best first; `forkable` picks one and says why."""

from sandboxgym.mechanisms.choosing import forkable
from sandboxgym.mechanisms.replay import ReplayEnv
from sandboxgym.mechanisms.state_api import StateApi, register_native

__all__ = ["ReplayEnv", "StateApi", "forkable", "register_native"]
