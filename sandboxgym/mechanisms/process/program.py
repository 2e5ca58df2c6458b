"""A program of ours in an interpreter of its own: starting it, ending it, how it ended."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Mapping

from sandboxgym.mechanisms.process.wire import Connection

ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "BLIS_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    "RAYON_NUM_THREADS": "1",
}
"""Variables that keep numerical libraries from starting threads."""

_PROGRAM = (
    "import json, sys; descriptor, sys.path[:] = json.loads(sys.argv.pop()); "
    "from {module} import main; main(descriptor)"
)


def start(
    module: str, connection: Connection, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Run `main` of a module, which gets the descriptor of its end of a connection.

    It imports from where this process does.
    """
    paths = [path for path in sys.path if type(path) is str]
    return subprocess.Popen(
        [
            *(sys.executable, "-c", _PROGRAM.format(module=module)),
            json.dumps([connection.fileno(), paths]),
        ],
        env=environment,
        stdin=subprocess.DEVNULL,
        pass_fds=[connection.fileno()],
        start_new_session=True,  # Ctrl-C in a terminal is for the owner
    )


def end(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Wait for a process that was told to end, and kill it where it takes longer."""
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def ending(code: int) -> str:
    """How a process ended, in words that follow its name, from its exit code."""
    if code >= 0:
        return f"exited with code {code}"
    name = signal.Signals(-code).name
    why = "; was the machine out of memory?" if name == "SIGKILL" else ""
    return f"was killed by {name}{why}"
