"""What an environment and all its forks share."""

from __future__ import annotations

import threading
from typing import Any

from sandboxgym.core.errors import ReproductionError, WorkerLostError
from sandboxgym.mechanisms.process.handles import Nursery, Process
from sandboxgym.mechanisms.process.templates import Limits, Templates
from sandboxgym.mechanisms.process.wire import Connection


class Family:
    """The nursery, an instance that was never used, and the templates.

    Args:
        maker: What makes the environment, pickled.
        timeout: Seconds that an answer may take, or None.
        limits: Of the templates.

    Attributes:
        layers: Names of the wrappers, outermost first, and of the environment inside.
        settings: What `settings_of` says of the instance that was built.

    Raises:
        ReproductionError: The environment could not be built in another process.
        WorkerLostError: The process that built it ended, or took longer than `timeout`.
    """

    def __init__(self, maker: bytes, timeout: float | None, limits: Limits) -> None:
        ours, theirs = Connection.pair()
        try:
            self.nursery = Nursery(maker, theirs)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self.templates = Templates(limits)
        self._lock = threading.Lock()
        try:
            self._pristine = Process(ours, self.nursery, timeout, self.nursery.first)
        except WorkerLostError:
            raise
        except Exception as error:
            raise ReproductionError(
                f"building the environment in another process failed with {type(error).__name__}: "
                f"{error}\n{error.__cause__}"
            ) from error
        self.layers: list[str] = self._pristine.greeting["layers"]
        self.settings: list[dict[str, Any]] = self._pristine.greeting["settings"]

    @property
    def gone(self) -> bool:
        """Whether there can be no more fresh instances."""
        return self._pristine.gone

    def fresh(self) -> Process:
        """A process with an environment that was built, and not used since.

        Raises:
            UncapturedStateError: As it is built, it holds something that a fork would not copy.
        """
        with self._lock:
            return self._pristine.fork()
