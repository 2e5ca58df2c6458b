"""A private Docker daemon for tests, and a small image made of the machine's own packages.

It needs no registry and no daemon of the user. Where neither a daemon is given by
SANDBOXGYM_DOCKER_HOST nor one can be started, tests skip and say why.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PACKAGES = (
    *("base-files", "bash", "coreutils", "findutils", "grep", "sed", "mawk", "procps", "hostname"),
    *("util-linux", "libc-bin", "libc6", "dash", "tar", "git", "python3"),
)
START_SECONDS = 30.0
IMAGE = "sandboxgym-test:latest"


class NoDaemonError(Exception):
    """No daemon can be used here."""


@contextmanager
def daemon() -> Iterator[str]:
    """The address of a daemon that is there as long as it is needed.

    Raises:
        NoDaemonError: There is none.
    """
    given = os.environ.get("SANDBOXGYM_DOCKER_HOST")
    if given:
        yield given
        return
    program = shutil.which("dockerd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if program is None or os.geteuid() != 0:
        raise NoDaemonError("a daemon of our own takes root and the program dockerd (docker.io)")
    folder = Path(tempfile.mkdtemp(prefix="dockerd-"))
    address = f"unix://{folder}/docker.sock"
    places = {"data-root": "data", "exec-root": "exec", "pidfile": "pid"}
    arguments = [f"--{option}={folder}/{name}" for option, name in places.items()]
    arguments += ["-H", address, "--iptables=false", "--ip6tables=false", "--bridge=none"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([program, *arguments], stdout=log, stderr=log)
    try:
        _wait_for(process, folder)
        yield address
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for(process: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not (folder / "docker.sock").exists() or not (folder / "pid").exists():
        if process.poll() is not None or time.monotonic() > deadline:
            said = (folder / "log").read_text(errors="replace").strip().splitlines()
            raise NoDaemonError(f"dockerd does not start here: {said[-1] if said else 'silence'}")
        time.sleep(0.1)


def make_image(client: Any, name: str = IMAGE, tree: Path | None = None) -> None:
    """An image with a shell, and /repo with a README and docs/, or with the files of a tree."""
    if shutil.which("dpkg-query") is None:
        raise NoDaemonError("the image is made of Debian's packages, and this is no Debian")
    with tempfile.TemporaryFile() as file:
        with tarfile.open(fileobj=file, mode="w") as archive:
            for path in _installed():
                archive.add(path, arcname=path.lstrip("/"), recursive=False)
            _add_tree(archive, tree)
        file.seek(0)
        repository, _, tag = name.partition(":")
        changes = ["WORKDIR /repo", "ENV FROM_IMAGE=yes"]
        pieces = iter(lambda: file.read(1 << 20), b"")  # a file is not sent in chunks
        client.api.import_image_from_stream(pieces, repository=repository, tag=tag, changes=changes)


def _installed() -> list[str]:
    """All files of the packages and of those that they need, and the links to their folders."""
    packages = {*PACKAGES, *_needed(PACKAGES)}
    done = subprocess.run(
        ["dpkg-query", "-L", *sorted(packages)], capture_output=True, text=True, check=False
    )
    found = {line for line in done.stdout.splitlines() if line.startswith("/") and line != "/."}
    found |= {"/bin", "/sbin", "/lib", "/lib64", "/usr/bin/awk", "/etc/alternatives/awk"}
    skipped = ("/usr/share/doc", "/usr/share/man", "/usr/share/locale", "/dev", "/proc", "/sys")
    usable = (path for path in found if not path.startswith(skipped) and os.path.lexists(path))
    # A path through one of the links /bin, /lib... would be in the archive twice.
    return sorted(
        {os.path.join(os.path.realpath(os.path.dirname(p)), os.path.basename(p)) for p in usable}  # noqa: PTH118, PTH119, PTH120
    )


def _needed(packages: tuple[str, ...]) -> set[str]:
    done = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Package} ${Pre-Depends}, ${Depends}\n"],
        capture_output=True,
        text=True,
        check=True,
    )
    needs: dict[str, set[str]] = {}
    for line in done.stdout.splitlines():
        name, _, rest = line.partition(" ")
        needs[name] = {part.split()[0].split(":")[0] for part in rest.split(",") if part.split()}
    found: set[str] = set()
    waiting, followed = list(packages), ("lib", "python3", "zlib")
    while waiting:
        for other in needs.get(waiting.pop(), ()):
            if other in needs and other not in found and other.startswith(followed):
                found.add(other)
                waiting.append(other)
    return found


def _add_tree(archive: tarfile.TarFile, tree: Path | None) -> None:
    if tree is not None:
        archive.add(tree, arcname="repo")
        return
    for name in ("repo", "repo/docs"):
        folder = tarfile.TarInfo(name)
        folder.type, folder.mode = tarfile.DIRTYPE, 0o755
        archive.addfile(folder)
    readme = tarfile.TarInfo("repo/README")
    readme.size, readme.mode = len(b"read me\n"), 0o644
    archive.addfile(readme, io.BytesIO(b"read me\n"))
