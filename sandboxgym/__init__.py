"""sandboxgym: exact snapshot, restore and fork for Gymnasium environments.

>>> import gymnasium as gym, sandboxgym as sg
>>> env = gym.make("sandboxgym/ALFWorld-v0", source="synthetic")
>>> obs, info = env.reset(seed=7)
>>> snap = env.snapshot()
>>> left, right = sg.fork(env, 2)
"""

from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from sandboxgym.pool import ForkPool
    from sandboxgym.vector import ForkableVectorEnv

__all__ = [
    "Fidelity",
    "ForkPool",
    "Forkable",
    "ForkableEnv",
    "ForkableVectorEnv",
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


def __getattr__(name: str) -> Any:
    """Import what not everybody needs when it is first asked for."""
    if name == "ForkPool":
        from sandboxgym.pool import ForkPool

        return ForkPool
    if name == "ForkableVectorEnv":
        from sandboxgym.vector import ForkableVectorEnv

        return ForkableVectorEnv
    raise AttributeError(f"module 'sandboxgym' has no attribute {name!r}")
