"""Functions that remember."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from keepcache.lru import LRUCache

Function = TypeVar("Function", bound=Callable[..., Any])
_MISSING = object()


def memoized(
    size: int = 128, *, ignore: tuple[str, ...] = (), keep_none: bool = True
) -> Callable[[Function], Function]:
    """Let a function remember its last results.

    Args:
        size: How many.
        ignore: Keyword arguments that do not change the result.
        keep_none: Whether None is remembered too; else such a call is made again.
    """

    def decorate(function: Function) -> Function:
        cache = LRUCache(size)

        @functools.wraps(function)
        def remembering(*arguments: Any, **named: Any) -> Any:
            key = make_key(arguments, named, ignore)
            value = cache.get(key, _MISSING)
            if value is _MISSING:
                value = function(*arguments, **named)
                if value is not None or keep_none:
                    cache.put(key, value)
            return value

        remembering.cache = cache  # type: ignore[attr-defined]
        return remembering  # type: ignore[return-value]

    return decorate


def make_key(
    arguments: tuple[Any, ...], named: dict[str, Any], ignore: tuple[str, ...] = ()
) -> tuple[Any, ...]:
    """What tells calls apart; the order of keyword arguments does not."""
    kept = [(name, value) for name, value in named.items() if name not in ignore]
    return (arguments, tuple(sorted(kept)))
