"""The Python and the packages that a task needs, built once and shown read-only in its sandboxes.

They appear at the same paths on every machine: the virtual environment is made where there is room
for it, and then told where it will be seen.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sandboxgym.core.errors import MissingDependencyError, SandboxGymError
from sandboxgym.sandboxes.repo.backend import DEFAULT_ENVIRONMENT
from sandboxgym.sandboxes.repo.bases import WORKDIR, default_cache
from sandboxgym.sandboxes.repo.swebench.rows import Setup

VENV, PYTHON = "/opt/venv", "/opt/python"
"""Where sandboxes see them."""

_FORMAT = 1  # of what is in the cache
_BUILD_SECONDS = 900
_ASK = (
    "import json, os, sys, sysconfig; print(json.dumps([list(sys.version_info[:3]), "
    "sys.base_prefix, os.path.realpath(sys.executable), "
    "bool(sysconfig.get_config_var('Py_ENABLE_SHARED'))]))"
)


class SetupError(SandboxGymError, RuntimeError):
    """The environment of a task could not be built; the message has pip's words."""


@dataclass(frozen=True)
class Toolchain:
    """What a base needs beside the tree.

    Attributes:
        binds: Folders of the machine and where sandboxes see them.
        environment: Variables of the shell.
    """

    binds: tuple[tuple[str, str], ...]
    environment: Mapping[str, str]


@dataclass(frozen=True)
class Interpreter:
    """A Python of this machine."""

    version: tuple[int, int, int]
    prefix: Path
    executable: Path
    shared: bool

    @property
    def is_systems(self) -> bool:
        """Whether sandboxes have it anyway."""
        return self.prefix == Path("/usr")

    @property
    def prefix_inside(self) -> Path:
        """Where sandboxes see it."""
        return self.prefix if self.is_systems else Path(PYTHON)


def toolchain_of(setup: Setup, *, sources: bool = False, cache: Path | None = None) -> Toolchain:
    """Build what a setup asks for, unless the cache has it.

    Args:
        setup: What to build.
        sources: Install packages from their sources where there is no wheel. Their setup scripts
            then run on this machine, so do this only for a setup of your own.
        cache: Where to build it; None takes a folder of `default_cache()`.

    Raises:
        MissingDependencyError: This machine has no such Python.
        SetupError: It could not be built.
    """
    python = find_python(setup.python)
    folder = cache or default_cache().parent / "environments"
    key = json.dumps([_FORMAT, python.version, str(python.prefix), list(setup.pins), sources])
    target = folder / hashlib.blake2b(key.encode(), digest_size=16).hexdigest()
    if not target.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".new-") as building:
            new = Path(building, "venv")
            _install(python, setup, new, sources)
            _settle(python, new)
            with contextlib.suppress(OSError):  # another process was faster
                new.rename(target)
    binds = [(str(target), VENV)]
    if not python.is_systems:
        binds.append((str(python.prefix), PYTHON))
    return Toolchain(tuple(binds), _variables(setup, python))


def find_python(version: str) -> Interpreter:
    """A Python of this machine with this version, such as "3.11" or "3.11.7".

    Raises:
        MissingDependencyError: There is none.
    """
    wanted = tuple(map(int, version.split(".")))
    for candidate in _candidates(".".join(version.split(".")[:2])):
        found = _asked(candidate)
        if found is not None and found.version[: len(wanted)] == wanted:
            return found
    raise MissingDependencyError(
        f"this task needs Python {version}, and none is on the PATH or under ~/.pyenv/versions: "
        f"install it, for example with `pyenv install {version}`"
    )


def _candidates(minor: str) -> Iterator[str]:
    yield sys.executable
    on_path = shutil.which(f"python{minor}")
    if on_path is not None:
        yield on_path
    versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv", "versions")
    for path in sorted(versions.glob(f"{minor}*/bin/python{minor}"), reverse=True):
        yield str(path)


def _asked(executable: str) -> Interpreter | None:
    """What an interpreter says of itself; None where it cannot be run."""
    try:
        done = subprocess.run(
            [executable, "-I", "-c", _ASK], capture_output=True, timeout=60, check=True
        )
        version, prefix, real, shared = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    major, minor, micro = version
    return Interpreter((major, minor, micro), Path(prefix), Path(real), shared)


def _install(python: Interpreter, setup: Setup, venv: Path, sources: bool) -> None:
    without = [] if setup.pins else ["--without-pip"]
    _run([str(python.executable), "-I", "-m", "venv", *without, str(venv)])
    if setup.pins:
        pip = [str(venv / "bin" / "python"), "-I", "-m", "pip", "--disable-pip-version-check"]
        install = ["install", "--quiet", "--no-input", "--no-compile"]
        which = ["--prefer-binary"] if sources else ["--only-binary", ":all:"]
        _run([*pip, *install, *which, "--", *setup.pins])


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_BUILD_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise SetupError(f"{' '.join(command)} took more than {_BUILD_SECONDS} s") from error
    if done.returncode != 0:
        words = (done.stderr.strip() or done.stdout.strip())[-2000:]
        raise SetupError(f"{' '.join(command)} failed: {words}")


def _settle(python: Interpreter, venv: Path) -> None:
    """Tell a virtual environment where it will be seen, and let everybody read it."""
    inside = python.prefix_inside / python.executable.relative_to(python.prefix)
    for path in (venv / "pyvenv.cfg", *(venv / "bin").iterdir()):
        if path.is_symlink():
            if path.readlink().is_absolute():
                path.unlink()
                path.symlink_to(inside)
            continue
        text = path.read_bytes()
        for there, seen in ((venv, VENV), (python.prefix, str(python.prefix_inside))):
            text = text.replace(os.fsencode(there), seen.encode())
        path.write_bytes(text)
    for folder, _, names in os.walk(venv):
        for entry in (Path(folder), *(Path(folder, name) for name in names)):
            if not entry.is_symlink():
                executable = 0o111 if entry.stat().st_mode & stat.S_IXUSR else 0
                entry.chmod(0o644 | executable)


def _variables(setup: Setup, python: Interpreter) -> dict[str, str]:
    variables = {
        "PATH": f"{VENV}/bin:{DEFAULT_ENVIRONMENT['PATH']}",
        "VIRTUAL_ENV": VENV,
        "PYTHONDONTWRITEBYTECODE": "1",
        **setup.environment,
    }
    if "PYTHONPATH" in variables:  # of the repository, wherever the shell stands
        parts = variables["PYTHONPATH"].split(":")
        variables["PYTHONPATH"] = ":".join(os.path.join(WORKDIR, p) for p in parts)  # noqa: PTH118
    if python.shared and not python.is_systems:
        variables["LD_LIBRARY_PATH"] = f"{PYTHON}/lib"
    return variables
