"""Where a model computes: on one device, or spread over all that there are."""

from __future__ import annotations

from typing import Any

from sandboxgym.core.errors import MissingDependencyError
from sandboxgym_learners.policy import PolicyError

EVERYWHERE = "auto"


def placed(model: Any, device: str) -> Any:
    """Move a model to a device.

    Args:
        model: Of transformers, with an adapter or without.
        device: Of torch; "auto" has accelerate spread the layers evenly over all GPUs, or over the
            processor where there is none. What is put in and what comes out is on the first.

    Raises:
        MissingDependencyError: accelerate is needed and not installed.
        PolicyError: The model is too large for all GPUs together.
    """
    if device != EVERYWHERE:
        return model.to(device)
    try:
        from accelerate import dispatch_model, infer_auto_device_map
        from accelerate.utils import get_balanced_memory
    except ImportError as error:
        raise MissingDependencyError(
            "--policy.device auto needs accelerate: pip install accelerate, or name one device "
            "of torch"
        ) from error
    whole = list(model._no_split_modules or ())  # layers that must not be torn apart
    memory = get_balanced_memory(model, no_split_module_classes=whole)
    gpus = {name: size for name, size in memory.items() if name != "cpu"}
    places = infer_auto_device_map(model, max_memory=gpus or memory, no_split_module_classes=whole)
    if "disk" in places.values():
        raise PolicyError(
            f"the model does not fit into the memory of {len(gpus)} GPUs: train an adapter "
            "(--policy.lora) on weights in bfloat16 (--policy.precision), or a smaller model"
        )
    return dispatch_model(model, places)
