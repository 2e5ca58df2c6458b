"""Rules of the wrappers that convert between array frameworks."""

from __future__ import annotations

from typing import Any

from sandboxgym.core.snapshot import Transition
from sandboxgym.core.wrapper_rules.rule import WrapperRule


def _view_converted(wrapper: Any, last: Transition) -> Transition:
    # Imported here: it needs array-api-compat, which whoever has such a wrapper has too.
    from gymnasium.wrappers.array_conversion import array_conversion

    framework, device = wrapper._target_xp, wrapper._target_device
    return Transition(
        array_conversion(last.obs, xp=framework, device=device),
        float(last.reward),
        bool(last.terminated),
        bool(last.truncated),
        array_conversion(last.info, xp=framework, device=device),
    )


def _frameworks(wrapper: Any) -> dict[str, Any]:
    return {
        "env_xp": wrapper._env_xp,
        "target_xp": wrapper._target_xp,
        "env_device": wrapper._env_device,
        "target_device": wrapper._target_device,
    }


def _device(wrapper: Any) -> dict[str, Any]:
    return {"device": wrapper._target_device}


def _no_arguments(wrapper: Any) -> dict[str, Any]:
    return {}


RULES = {
    f"gymnasium.wrappers.{name}": WrapperRule(
        view=_view_converted,
        recomputable=True,
        arguments=arguments,
        note="snapshots hold numpy arrays; a restore gives back torch and jax arrays",
    )
    for name, arguments in (
        ("array_conversion:ArrayConversion", _frameworks),
        ("jax_to_numpy:JaxToNumpy", _no_arguments),
        ("jax_to_torch:JaxToTorch", _device),
        ("numpy_to_torch:NumpyToTorch", _device),
    )
}
