"""sandboxgym: exact snapshot, restore and fork for Gymnasium environments.

>>> import gymnasium as gym, sandboxgym as sg
>>> env = gym.make("sandboxgym/ALFWorld-v0", source="synthetic")
>>> obs, info = env.reset(seed=7)
>>> snap = env.snapshot()
>>> left, right = sg.fork(env, 2)
"""

from sandboxgym.core.env import ForkableEnv
from sandboxgym.core.errors import SandboxGymError
from sandboxgym.core.forking import fork, restore, snapshot, state_digest
from sandboxgym.core.front import Forkable
from sandboxgym.core.snapshot import Fidelity, Recipe, SandboxSpec, Snapshot, Transition
from sandboxgym.core.version import __version__
from sandboxgym.core.wrappers import register_wrapper_state, stateless_wrapper
from sandboxgym.mechanisms import StateApi, forkable, register_native
from sandboxgym.registration import register, register_all
from sandboxgym.store import SnapshotStore

__all__ = [
    "Fidelity",
    "Forkable",
    "ForkableEnv",
    "Recipe",
    "SandboxGymError",
    "SandboxSpec",
    "Snapshot",
    "SnapshotStore",
    "StateApi",
    "Transition",
    "__version__",
    "fork",
    "forkable",
    "register",
    "register_all",
    "register_native",
    "register_wrapper_state",
    "restore",
    "snapshot",
    "state_digest",
    "stateless_wrapper",
]

register_all()
