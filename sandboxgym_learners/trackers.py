"""Services that the numbers of a run go to as well: any tracker that `accelerate` knows.

`--trackers wandb mlflow` starts them when training does. What they keep on disk, if anything, goes
below `RUN_DIR/tracking`; how they are told where to send the rest is their own affair (environment
variables, a login). The run directory stays the record: a run that goes on tells a tracker what
comes from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sandboxgym.core.errors import MissingDependencyError, SandboxGymError

PROJECT = "sandboxgym"


class TrackerError(SandboxGymError, RuntimeError):
    """A tracker is not known, could not start, or failed."""


class Trackers:
    """Trackers of one run; without names, none."""

    def __init__(self, names: Sequence[str], folder: Path, config: Mapping[str, Any]) -> None:
        """Start them.

        Args:
            names: As `accelerate` calls them.
            folder: The run directory.
            config: The configuration of the run, nested.

        Raises:
            TrackerError: One could not start.
        """
        self._trackers: list[tuple[str, Any]] = []
        if not names:
            return
        from accelerate import PartialState
        from accelerate.tracking import LOGGER_TYPE_TO_CLASS

        PartialState()  # they ask it whether this is the main process
        for name in names:
            kind = LOGGER_TYPE_TO_CLASS[name]
            where = [folder / "tracking"] if kind.requires_logging_directory else []
            tracker = _trying(name, "could not start", kind, PROJECT, *where)
            if hasattr(tracker, "start"):
                _trying(name, "could not start", tracker.start)
            self._trackers.append((name, tracker))
            take = tracker.store_init_configuration
            _trying(name, "did not take the configuration", take, flat(config))

    def log(self, update: int, values: Mapping[str, float | None]) -> None:
        """Tell what is known of an update.

        Raises:
            TrackerError: One failed.
        """
        known = {name: value for name, value in values.items() if value is not None}
        for name, tracker in self._trackers:
            _trying(name, "failed", tracker.log, known, step=update)

    def close(self) -> None:
        """Let them send what they still hold."""
        while self._trackers:
            name, tracker = self._trackers.pop()
            _trying(name, "could not finish", tracker.finish)


def check(names: Sequence[str]) -> None:
    """See that trackers can be had, before anything is made.

    Raises:
        MissingDependencyError: `accelerate` or a tracker is not installed.
        TrackerError: There is no tracker of that name.
    """
    if not names:
        return
    try:
        from accelerate.tracking import LOGGER_TYPE_TO_CLASS, get_available_trackers
        from accelerate.utils import LoggerType
    except ImportError as error:
        raise MissingDependencyError(
            'trackers need accelerate: pip install "sandboxgym[trackers]", or go without --trackers'
        ) from error
    shipped = {str(kind) for kind in LoggerType} - {"all"}
    installed = {str(kind) for kind in get_available_trackers()}
    for name in names:
        if name not in LOGGER_TYPE_TO_CLASS:
            raise TrackerError(
                f"no tracker {name!r}: choose among {', '.join(sorted(LOGGER_TYPE_TO_CLASS))}"
            )
        if name in shipped and name not in installed:
            raise MissingDependencyError(
                f"the tracker {name} is not installed: pip install {name}, or leave it out of "
                "--trackers"
            )


def flat(nested: Mapping[str, Any], above: str = "") -> dict[str, str | int | float | bool]:
    """A nested configuration with names like "tree.roots", and texts for what is no number."""
    found: dict[str, str | int | float | bool] = {}
    for name, value in nested.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{above}{name}.")
        else:
            found[above + name] = value if isinstance(value, str | int | float) else str(value)
    return found


def _trying(name: str, what: str, call: Callable[..., Any], *args: Any, **options: Any) -> Any:
    try:
        return call(*args, **options)
    except Exception as error:  # each tracker has errors of its own
        raise TrackerError(
            f"the tracker {name} {what} ({type(error).__name__}: {error}); the run goes on without "
            "it by --resume with other --trackers"
        ) from error
