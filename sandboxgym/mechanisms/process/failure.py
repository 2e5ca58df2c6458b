"""Exceptions on their way from a worker to the owner: as data, never as code."""

from __future__ import annotations

import builtins
import traceback
from typing import Any

import gymnasium as gym

from sandboxgym.core import codec, errors

_KNOWN = {
    "builtins": vars(builtins),
    "gymnasium.error": vars(gym.error),
    "sandboxgym.core.errors": vars(errors),
}


class EnvironmentTraceback(Exception):  # noqa: N818 - it is a cause, nobody raises it
    """Where in the worker process an exception came from."""

    def __str__(self) -> str:
        return f"in the worker process:\n{self.args[0]}"


def describe(error: BaseException) -> dict[str, Any]:
    """An exception as plain data."""
    args = list(error.args)
    try:
        codec.encode(args)
    except errors.StateEncodingError:
        args = [_readable(str(error))]
    lines = traceback.format_exception(type(error), error, error.__traceback__)
    return {
        "module": type(error).__module__,
        "name": type(error).__qualname__,
        "args": args,
        "text": _readable(str(error)),
        "traceback": _readable("".join(lines)),
    }


def rebuild(described: dict[str, Any]) -> Exception:
    """The exception again, where its class is Python's, Gymnasium's or ours; else a named one."""
    error = _of_known_class(described) or errors.EnvironmentRaisedError(
        f"the environment raised {described['module']}.{described['name']}: {described['text']}"
    )
    error.__cause__ = EnvironmentTraceback(described["traceback"])
    return error


def _of_known_class(described: dict[str, Any]) -> Exception | None:
    cls = _KNOWN.get(described["module"], {}).get(described["name"])
    if not isinstance(cls, type) or not issubclass(cls, Exception):
        return None
    try:
        return cls(*described["args"])
    except TypeError:  # its constructor wants something else than what it keeps as args
        return None


def _readable(text: str) -> str:
    """`text` without lone surrogates, which have no encoding."""
    return text.encode("utf-8", "replace").decode("utf-8")
