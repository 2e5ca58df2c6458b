"""The infos of many environments as one dict of arrays, in the form that Gymnasium gives them."""

from __future__ import annotations

from typing import Any

import numpy as np


def add_info(infos: dict[str, Any], info: dict[str, Any], lane: int, lanes: int) -> None:
    """Add one lane's info to those of the lanes before it.

    Each key has an array with a place for each lane, and beside it, under `_key`, a mask of the
    lanes that had it. What kind of array it is the first value decides. Dicts become dicts of
    arrays; `final_obs` is kept as it is.
    """
    for key, value in info.items():
        mask = infos.get(f"_{key}")
        if mask is None:
            mask = infos[f"_{key}"] = np.zeros(lanes, np.bool_)
        if isinstance(value, dict) and key != "final_obs":
            add_info(infos.setdefault(key, {}), value, lane, lanes)
        else:
            if key not in infos:
                infos[key] = _places(value if key != "final_obs" else None, lanes)
            infos[key][lane] = value
        mask[lane] = True


def _places(value: Any, lanes: int) -> Any:
    """An array for values like this one."""
    if type(value) in (int, float, bool) or isinstance(value, np.number):
        return np.zeros(lanes, type(value))
    if isinstance(value, np.ndarray):
        return np.zeros((lanes, *value.shape), value.dtype)
    return np.full(lanes, None, object)
