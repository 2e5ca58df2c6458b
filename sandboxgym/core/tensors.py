"""Arrays of torch and jax as plain data, and back.

A wrapper such as `NumpyToTorch` returns tensors. A snapshot, which holds nothing but plain data,
keeps a numpy array with the name of the framework instead; a restore gives back the tensor.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

import numpy as np

from sandboxgym.core.errors import MissingDependencyError, StateEncodingError
from sandboxgym.core.plain import TensorData, is_array, owned


def plain(tree: Any, where: str = "value") -> Any:
    """Like `owned`, and torch and jax arrays become plain data too.

    Raises:
        StateEncodingError: `tree` holds something else that is not plain data; the message has its
            path.
    """
    try:
        return owned(tree, where)
    except StateEncodingError:
        return owned(_lowered(tree), where)


def revived(tree: Any) -> Any:
    """A copy of plain data in which torch and jax arrays are what they were.

    Raises:
        MissingDependencyError: The framework or the device of one is not to be had here.
    """
    return raised(owned(tree))


def raised(tree: Any) -> Any:
    """Plain data with torch and jax arrays as what they were; `tree` itself where it has none."""
    return _raised(tree) if _holds_tensor(tree) else tree


def _holds_tensor(tree: Any) -> bool:
    kind = type(tree)
    if kind is dict:
        tree = tree.values()
    elif kind is not list and kind is not tuple:
        return kind is TensorData
    # A loop, and texts left out at once: infos hold long lists of them, at every restore.
    for value in tree:  # noqa: SIM110
        if type(value) is not str and _holds_tensor(value):
            return True
    return False


def _raised(tree: Any) -> Any:
    kind = type(tree)
    if kind is TensorData:
        return _tensor(tree)
    if kind is dict:
        return {key: _raised(value) for key, value in tree.items()}
    if kind is list:
        return [_raised(value) for value in tree]
    if kind is tuple:
        return tuple([_raised(value) for value in tree])
    return tree


def _lowered(tree: Any) -> Any:
    kind = type(tree)
    if kind is dict:
        return {key: _lowered(value) for key, value in tree.items()}
    if kind is list:
        return [_lowered(value) for value in tree]
    if kind is tuple:
        return tuple([_lowered(value) for value in tree])
    return _data(tree)


def _data(leaf: Any) -> Any:
    """A tensor as data; anything else, and tensors that numpy cannot hold, as they are."""
    torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
    if torch is not None and type(leaf) is torch.Tensor:
        if leaf.requires_grad or leaf.layout is not torch.strided or leaf.dtype is torch.bfloat16:
            return leaf
        data = TensorData("torch", str(leaf.device), leaf.cpu().numpy().copy())
    elif jax is not None and isinstance(leaf, jax.Array) and not isinstance(leaf, jax.core.Tracer):
        if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return leaf
        data = TensorData("jax", "", np.array(leaf))
    else:
        return leaf
    return data if is_array(data.array) else leaf


def _tensor(data: TensorData) -> Any:
    try:
        if data.framework == "torch":
            torch = importlib.import_module("torch")
            return torch.from_numpy(data.array.copy()).to(data.device)
        return importlib.import_module("jax.numpy").asarray(data.array)
    except (ImportError, RuntimeError, AssertionError) as error:  # torch has no type of its own
        place = f" on {data.device}" if data.device else ""
        raise MissingDependencyError(
            f"the snapshot holds an array of {data.framework}{place}, which cannot be had here: "
            f"{error}"
        ) from error
