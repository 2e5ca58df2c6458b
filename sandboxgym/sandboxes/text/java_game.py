"""What the text worlds that run in a Java machine share: one machine each, and forks by replay.

A Java machine has threads, so it cannot be forked, and neither library can save a game. A snapshot
is the recipe and a hash of all that was said, which a replay has to give again.

Both libraries keep things in hash sets of objects, and Java draws the hash of an object by chance:
with the same seed and commands, 12 of ScienceWorld's 30 tasks name things in another order. So the
machine is started with one and the same hash for all objects, which leaves them in order of entry.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import threading
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from sandboxgym.core.digest import digest
from sandboxgym.core.env import ForkableEnv
from sandboxgym.core.errors import MissingDependencyError
from sandboxgym.core.snapshot import Fidelity
from sandboxgym.sandboxes.text import dialogue

SPLITS = ("train", "dev", "test")
NO_LIMIT = 2**31 - 1  # of steps; `gymnasium.make` has the limit, and truncates

_PATIENCE = 5  # seconds for a Java machine to end by itself
_OPTIONS_VARIABLE = "JAVA_TOOL_OPTIONS"  # neither library lets us pass options
_SAME_HASH_FOR_ALL = (
    "-XX:+IgnoreUnrecognizedVMOptions -XX:+UnlockExperimentalVMOptions -XX:hashCode=2"
)
_launching = threading.Lock()


class JavaGameEnv(ForkableEnv[str, str]):
    """A text world in a Java machine of its own, which is started when it is first needed."""

    metadata = {"render_modes": ["ansi"], "render_fps": 1}
    state_is_witness: ClassVar[bool] = True

    def __init__(self, split: str, render_mode: Literal["ansi"] | None) -> None:
        if split not in SPLITS:
            raise ValueError(f"split={split!r}: choose among {', '.join(SPLITS)}")
        self.split = split
        self.render_mode = render_mode
        self.observation_space = dialogue.observations()
        self.action_space = dialogue.commands()
        self._library: Any = None
        self._text = ""
        self._seen = ""

    @abstractmethod
    def _launch(self) -> Any:
        """Start the library's environment, and with it a Java machine."""

    @abstractmethod
    def _tidy(self, library: Any) -> None:
        """Remove the temporary files of the library's environment."""

    @property
    def library(self) -> Any:
        """The library's environment."""
        if self._library is None:
            if shutil.which("java") is None:
                raise MissingDependencyError(
                    f"{type(self).__name__} needs Java: apt-get install default-jre-headless, or "
                    "https://adoptium.net"
                )
            with _java_options(_SAME_HASH_FOR_ALL):
                self._library = self._launch()
        return self._library

    @property
    def fidelity(self) -> Fidelity:
        """The game is played again; exact, because all that is said is compared."""
        return Fidelity(mechanism="replay", cost="linear in depth")

    def get_state(self) -> dict[str, Any]:
        """A hash of all that happened since the reset: a witness, not a state to be set."""
        return {"seen": self._seen}

    def render(self) -> str:
        """What the game said last."""
        return self._text

    def close(self) -> None:
        """End the episode and the Java machine, and wait until that is gone."""
        self._record = None
        library, self._library = self._library, None
        if library is None:
            return
        machine: subprocess.Popen[bytes] = library._gateway.java_process
        library.close()
        self._tidy(library)
        try:
            machine.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            machine.kill()
            machine.wait()
        for pipe in (machine.stdin, machine.stdout, machine.stderr):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):  # nobody reads the rest any more
                    pipe.close()

    def _saw(self, *what: Any) -> None:
        """Add to the hash of all that happened."""
        self._seen = digest([self._seen, *what])


@contextlib.contextmanager
def _java_options(options: str) -> Iterator[None]:
    """Start Java machines with these options, beside those of the user."""
    with _launching:
        before = os.environ.get(_OPTIONS_VARIABLE)
        os.environ[_OPTIONS_VARIABLE] = f"{before or ''} {options}".strip()
        try:
            yield
        finally:
            if before is None:
                del os.environ[_OPTIONS_VARIABLE]
            else:
                os.environ[_OPTIONS_VARIABLE] = before
