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


_RULE = WrapperRule(
    view=_view_converted,
    recomputable=True,
    note="snapshots hold numpy arrays; a restore gives back torch and jax arrays",
)

RULES = {
    f"gymnasium.wrappers.{module}:{name}": _RULE
    for module, name in (
        ("array_conversion", "ArrayConversion"),
        ("jax_to_numpy", "JaxToNumpy"),
        ("jax_to_torch", "JaxToTorch"),
        ("numpy_to_torch", "NumpyToTorch"),
    )
}
