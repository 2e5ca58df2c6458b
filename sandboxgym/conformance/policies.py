"""Who plays the episodes that are recorded."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from gymnasium import spaces

from sandboxgym.core.errors import SandboxGymError

Policy: TypeAlias = Callable[[Any, dict[str, Any], spaces.Space[Any], np.random.Generator], Any]
"""Chooses an action from observation, info, a private copy of the action space, and a generator."""


class PolicyNotFoundError(SandboxGymError, LookupError):
    """No policy goes by the name that was given."""


def random_policy(
    obs: Any, info: dict[str, Any], space: spaces.Space[Any], rng: np.random.Generator
) -> Any:
    """One of the admissible commands where the info lists them, else any action of the space."""
    commands = info.get("admissible_commands")
    if commands:
        return commands[int(rng.integers(len(commands)))]
    return space.sample()


def load_policy(name: str) -> Policy:
    """The policy that "module:function" names.

    Raises:
        PolicyNotFoundError: The module or the function in it does not exist, or is no function.
    """
    module, colon, path = name.partition(":")
    if not (module and colon and path):
        raise PolicyNotFoundError(f"the policy {name!r} is not of the form 'module:function'")
    try:
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise PolicyNotFoundError(f"the policy {name} cannot be imported: {error}") from error
    if not callable(found):
        raise PolicyNotFoundError(
            f"the policy {name} is a {type(found).__name__}, not a function of observation, info, "
            "action space and generator"
        )
    policy: Policy = found
    return policy


def name_of(policy: Policy) -> str | None:
    """The "module:function" under which another process finds a policy, or None."""
    module = getattr(policy, "__module__", None)
    name = f"{module}:{getattr(policy, '__qualname__', '')}"
    try:
        found = None if module in (None, "__main__") else load_policy(name)
    except PolicyNotFoundError:
        return None
    return name if found is policy else None
