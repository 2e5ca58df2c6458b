"""What a rule says about a wrapper class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from sandboxgym.core.snapshot import Transition

View: TypeAlias = Callable[[Any, Transition], Transition]


def handed_through(wrapper: Any, last: Transition) -> Transition:
    """The view of a wrapper that changes nothing of what the level below returns."""
    return last


@dataclass(frozen=True)
class Statistics:
    """Running statistics over many episodes: what a learner gathers, not where an episode stands.

    A restore leaves them as they are, unless it is asked to rewind them or the wrapper has gathered
    nothing yet.

    Attributes:
        get: Returns them as plain data.
        set: Puts them back.
        gathered: Whether the wrapper has gathered any.
    """

    get: Callable[[Any], dict[str, Any]]
    set: Callable[[Any, dict[str, Any]], None]
    gathered: Callable[[Any], bool]


@dataclass(frozen=True)
class WrapperRule:
    """How one wrapper class is captured and put back.

    Attributes:
        get: Returns the wrapper's state without changing it.
        set: Puts such a state back.
        view: What the wrapper makes of the last transition of the level below, without changing
            anything. None where the wrapper has not kept what that would take.
        recomputable: Whether `view` gives at any later time exactly what the wrapper returned.
            Where it does not, a `Forkable` around the wrapper remembers what was returned.
        get_clock: Returns what follows the wall clock; it is kept out of digests.
        set_clock: Puts that back.
        statistics: Its running statistics, if it has any; they are kept out of digests too.
        captured: For the documentation: what is captured.
        note: For the documentation: what else to know.
    """

    get: Callable[[Any], dict[str, Any]] = lambda wrapper: {}
    set: Callable[[Any, dict[str, Any]], None] = lambda wrapper, state: None
    view: View | None = handed_through
    recomputable: bool = False
    get_clock: Callable[[Any], dict[str, Any]] = lambda wrapper: {}
    set_clock: Callable[[Any, dict[str, Any]], None] = lambda wrapper, clock: None
    statistics: Statistics | None = None
    captured: str = "nothing: it keeps nothing between steps"
    note: str = ""
