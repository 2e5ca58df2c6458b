"""Gymnasium's MuJoCo environments: what MuJoCo integrates, and what it computed on the way.

`mjSTATE_INTEGRATION` is all that decides how the simulation goes on. It is not all that decides
what an environment returns. After a step, positions of bodies, contact forces and the like are
those of the moment before the last integration, and environments read them before they simulate
again (`xpos` for the distance covered, say). MuJoCo can only compute them anew, for the present
moment. So all of them are captured as well.

What depends on the contacts (the contacts themselves, the constraints of the solver) has another
size at each moment and cannot be set. No environment of Gymnasium's reads it before a simulation
step, which renews it. A subclass might, and is therefore refused.
"""

from __future__ import annotations

import functools
import hashlib
from typing import Any, ClassVar

import mujoco
import numpy as np

from sandboxgym.core.errors import UncapturedStateError
from sandboxgym.mechanisms.attributes import Attributes

# Arrays of `mjData` whose size follows the contacts, or which MuJoCo makes up for a step alone.
_SIZED_BY_CONTACTS = ("efc_", "iefc_", "efm_", "iacc", "ifrc_", "island_", "map_")


class MujocoState(Attributes):
    """State of a `MujocoEnv`: its attributes (a goal, say), the simulation and what it computed."""

    packages: ClassVar[tuple[str, ...]] = ("mujoco",)
    covers_subclasses: ClassVar[bool] = False
    left_alone: ClassVar[frozenset[str]] = frozenset({"model", "data", "mujoco_renderer"})

    def __init__(self) -> None:
        self._names: list[str] | None = None

    def get(self, env: Any) -> dict[str, Any]:
        """Attributes, integration state, computed quantities, and a hash of the model."""
        integrated = np.empty(mujoco.mj_stateSize(env.model, _INTEGRATION))
        mujoco.mj_getState(env.model, env.data, integrated, _INTEGRATION)
        return {
            "attributes": super().get(env),
            "model": model_hash(env.model),
            "integrated": integrated,
            "computed": {name: getattr(env.data, name) for name in self._computed(env.data)},
        }

    def set(self, env: Any, state: dict[str, Any]) -> None:
        """Put all of it back, and compute the contacts that belong to it."""
        if state["model"] != model_hash(env.model):
            raise UncapturedStateError(
                f"the model of this {type(env).__name__} is not the one that the state was captured "
                "with, and a model is no part of a state: change both in the same way, or use "
                "sandboxgym.forkable(env, mechanism='process')"
            )
        super().set(env, state["attributes"])
        mujoco.mj_setState(env.model, env.data, state["integrated"], _INTEGRATION)
        mujoco.mj_forward(env.model, env.data)
        for name in self._computed(env.data):
            getattr(env.data, name)[...] = state["computed"][name]

    def _computed(self, data: Any) -> list[str]:
        """Names of all numbers that MuJoCo keeps, but those that come and go with the contacts."""
        if self._names is None:
            self._names = [
                name
                for name in dir(data)
                if not name.startswith(("_", *_SIZED_BY_CONTACTS))
                and getattr(getattr(data, name), "dtype", None) == np.float64
                and getattr(data, name).size > 0
            ]
        return self._names


def model_hash(model: Any) -> str:
    """A hash of all numbers of a model, but pictures: masses, sizes, gravity, time step, ..."""
    found = hashlib.blake2b(digest_size=16)
    for part in (model, model.opt):
        for name in _numbers_of(type(part)):
            value = getattr(part, name)
            if isinstance(value, np.ndarray):
                found.update(value.tobytes())
            elif isinstance(value, int | float):
                found.update(repr(value).encode())
    return found.hexdigest()


@functools.cache
def _numbers_of(kind: type) -> tuple[str, ...]:
    return tuple(name for name in dir(kind) if not name.startswith(("_", "tex_")))


_INTEGRATION = mujoco.mjtState.mjSTATE_INTEGRATION
