"""What a probe finds, the system that it runs on, and trying a program for a limited time."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

MOST_OUTPUT = 4000  # bytes of a program's output that are kept


@dataclass(frozen=True)
class Finding:
    """Whether one thing can be used here.

    Attributes:
        name: What it is, as `--need` takes it.
        usable: Whether it worked when it was tried.
        what: What was found, or why it cannot be used.
        fix: The command that would make it usable, or "" where there is none.
    """

    name: str
    usable: bool
    what: str
    fix: str = ""


@dataclass(frozen=True)
class System:
    """What decides which command installs something.

    Attributes:
        title: The system's name and version.
        root: Whether this process may do everything.
        apt: Whether packages come from apt.
        ubuntu: Whether it is Ubuntu, where Chromium is a snap and not a package.
        systemd: Whether services are started by systemd.
    """

    title: str
    root: bool
    apt: bool
    ubuntu: bool
    systemd: bool

    @classmethod
    def here(cls) -> System:
        """This machine."""
        release = _os_release()
        return cls(
            title=release.get("PRETTY_NAME", f"{platform.system()} {platform.release()}"),
            root=hasattr(os, "geteuid") and os.geteuid() == 0,
            apt=shutil.which("apt-get") is not None,
            ubuntu=release.get("ID") == "ubuntu",
            systemd=Path("/run/systemd/system").is_dir(),
        )

    def as_root(self, command: str) -> str:
        """The command, with `sudo` where this is not root."""
        return command if self.root else f"sudo {command}"

    def install(self, packages: str, otherwise: str) -> str:
        """The command that installs Debian packages, or what to do on another system."""
        if not self.apt:
            return otherwise
        return self.as_root("apt-get update && ") + self.as_root(f"apt-get install -y {packages}")


@dataclass(frozen=True)
class Trial:
    """How a program ended.

    Attributes:
        ok: Whether it ended by itself, with status 0.
        out: Its standard output.
        error: Its standard error.
        why: Where it is not ok, why.
    """

    ok: bool
    out: str = ""
    error: str = ""
    why: str = ""


def tried(command: Sequence[str], seconds: float) -> Trial:
    """Run a program that gets no input, no terminal and `seconds` of time."""
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, "LC_ALL": "C"},
        )
    except OSError as error:
        return Trial(False, why=f"{command[0]} does not start: {error}")
    try:
        out, errors = (_text(written) for written in process.communicate(timeout=seconds))
    except subprocess.TimeoutExpired:
        return Trial(False, why=f"{command[0]} did not end within {seconds:g} seconds")
    finally:
        _end(process)
    lines = errors.strip().splitlines()
    why = lines[-1] if lines else f"{command[0]} ended with status {process.returncode}"
    return Trial(process.returncode == 0, out, errors, why)


def _text(written: bytes) -> str:
    return written[:MOST_OUTPUT].decode(errors="replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill what the program may have left in its session, and close its pipes."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):  # waiting for a disk that is not there
        process.wait(timeout=5)
    for pipe in (process.stdout, process.stderr):
        assert pipe is not None
        pipe.close()


def _os_release() -> dict[str, str]:
    try:
        return platform.freedesktop_os_release()
    except OSError:
        return {}
