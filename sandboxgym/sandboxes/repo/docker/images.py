"""Images as bases: run by the daemon, or exported once and run by the overlay backend."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from sandboxgym.core.errors import DataNotFoundError
from sandboxgym.sandboxes.repo.backend import DEFAULT_ENVIRONMENT, Base
from sandboxgym.sandboxes.repo.bases import (
    SANDBOX_USER,
    RepositoryError,
    commit_tracked_anew,
    default_cache,
)
from sandboxgym.sandboxes.repo.docker.owners import BACKEND, OWNER, this_process

_FORMAT = 1  # of what is in the cache
_ETC = {"hosts": "127.0.0.1 localhost sandbox\n", "hostname": "sandbox\n"}
_FOLDERS = ("proc", "dev/shm", "tmp", "var/tmp", "run", "home/agent")
_COPIED_AT_A_TIME = 1 << 20


@dataclass(frozen=True)
class ImageBase(Base):
    """An image of a daemon as what sandboxes start from; `root` and `binds` have no meaning.

    Attributes:
        image: Its id.
    """

    image: str = ""


def image_base(client: Any, image: str) -> ImageBase:
    """The base that `DockerBackend` runs: an image by name, with its own variables and folder.

    Raises:
        DataNotFoundError: The daemon has no such image.
    """
    found = _image(client, image)
    return ImageBase(
        root=Path("/"),
        workdir=_workdir(found),
        environment=_environment(found),
        name=f"image {found.id}",
        image=found.id,
    )


def base_of_image(
    client: Any, image: str, *, cache: Path | None = None, anew: bool = False
) -> Base:
    """The base that `OverlayBackend` runs: the files of an image, exported once into the cache.

    Moments above it and above `image_base` of the same image travel between the two backends. All
    files belong to the sandbox's user, so that commands may change more than in a container.

    Args:
        client: A client of the package `docker`.
        image: Its name or id.
        cache: Where to keep the files; None takes `default_cache()`.
        anew: Commit the repository in its working folder anew, as the only commit, so that nobody
            can read in its history what came later. Moments above it do not travel to Docker.

    Raises:
        DataNotFoundError: The daemon has no such image.
        RepositoryError: There is no repository to be committed anew.
    """
    found = _image(client, image)
    cache = cache or default_cache()
    key = f"image {_FORMAT} {found.id} {os.geteuid()}{' anew' * anew}"
    target = cache / hashlib.blake2b(key.encode(), digest_size=16).hexdigest()
    if not target.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache, prefix=".new-") as building:
            root = Path(building, "new")
            root.mkdir(mode=0o755)
            with exported(client, found.id) as file:
                _unpack(file, root)
            _complete(root)
            if anew:
                commit_tracked_anew(_inside(root, _workdir(found)))
            with contextlib.suppress(FileExistsError, OSError):  # another process was faster
                root.rename(target)
    name = f"image {found.id}{', committed anew' * anew}"
    return Base(target, (), _workdir(found).rstrip("/") or "/", _environment(found), name)


@contextmanager
def exported(client: Any, image: str) -> Iterator[IO[bytes]]:
    """All files of an image as a tar archive in a temporary file."""
    labels = {OWNER: this_process(), BACKEND: "export"}
    container = client.containers.create(
        image, entrypoint=["/bin/true"], command=[], labels=labels, network_mode="none"
    )
    try:
        with tempfile.TemporaryFile() as file:
            for piece in container.export(_COPIED_AT_A_TIME):
                file.write(piece)
            file.seek(0)
            yield file
    finally:
        container.remove(force=True, v=True)


def is_runtime_file(name: str) -> bool:
    """Whether a path of an exported container is the daemon's or the machine's, not the image's."""
    parts = name.split("/")
    return parts[0] in ("dev", "proc", "sys", "run", ".dockerenv") or name in (
        "etc/hosts",
        "etc/hostname",
        "etc/resolv.conf",
        "etc/mtab",
    )


def _image(client: Any, image: str) -> Any:
    from docker.errors import ImageNotFound

    try:
        return client.images.get(image)
    except ImageNotFound as error:
        raise DataNotFoundError(
            f"the daemon has no image {image!r}: pull it or load it first (docker pull, load)"
        ) from error


def _inside(root: Path, folder: str) -> Path:
    """A folder of an unpacked image, seen to be there and not behind a link."""
    path = root.resolve() / folder.strip("/")
    if path.resolve() != path:
        raise RepositoryError(f"{folder} of the image is behind a link, and is left alone")
    return path


def _environment(image: Any) -> dict[str, str]:
    given = (image.attrs["Config"] or {}).get("Env") or []
    return {**DEFAULT_ENVIRONMENT, **dict(line.split("=", 1) for line in given if "=" in line)}


def _workdir(image: Any) -> str:
    return (image.attrs["Config"] or {}).get("WorkingDir") or "/"


def _unpack(file: IO[bytes], root: Path) -> None:
    """Write the files of an image; links are made last, so that none is written through."""
    user = SANDBOX_USER if os.geteuid() == 0 else os.geteuid()
    folders, symbolic = [], []
    with tarfile.open(fileobj=file, mode="r:") as archive:
        for entry in archive:
            entry.name = entry.name.strip("/").removeprefix("./")
            if not entry.name or is_runtime_file(entry.name) or ".." in entry.name.split("/"):
                continue
            path = root / entry.name
            path.parent.mkdir(parents=True, exist_ok=True)
            if entry.isdir():
                path.mkdir(exist_ok=True)
                folders.append(entry)
            elif entry.issym():
                symbolic.append(entry)
            elif entry.islnk():
                os.link(root / entry.linkname.strip("/"), path, follow_symlinks=False)
            elif entry.isreg():
                _copy(archive, entry, path, user)
    for entry in symbolic:
        path = root / entry.name
        path.symlink_to(entry.linkname)
        if os.geteuid() == 0:
            os.chown(path, user, user, follow_symlinks=False)
        os.utime(path, (entry.mtime, entry.mtime), follow_symlinks=False)
    for entry in reversed(folders):
        path = root / entry.name
        if os.geteuid() == 0:
            os.chown(path, user, user)
        path.chmod(entry.mode & 0o7777 | 0o700)
        os.utime(path, (entry.mtime, entry.mtime))


def _copy(archive: tarfile.TarFile, entry: tarfile.TarInfo, path: Path, user: int) -> None:
    content = archive.extractfile(entry)
    assert content is not None
    with path.open("xb") as target:
        while data := content.read(_COPIED_AT_A_TIME):
            target.write(data)
        if os.geteuid() == 0:
            os.fchown(target.fileno(), user, user)
        os.fchmod(target.fileno(), entry.mode & 0o1777)  # nobody becomes another user
    os.utime(path, (entry.mtime, entry.mtime))


def _complete(root: Path) -> None:
    """Add what a running container has and an exported one lacks."""
    user = SANDBOX_USER if os.geteuid() == 0 else os.geteuid()
    for name in _FOLDERS:
        path = root / name
        if not path.exists():
            path.mkdir(parents=True)
            if os.geteuid() == 0:
                for made in (path, *path.relative_to(root).parents):
                    os.chown(root / made, user, user)
        if name in ("dev/shm", "tmp", "var/tmp"):
            path.chmod(0o1777)
    for name, text in _ETC.items():
        (root / "etc").mkdir(exist_ok=True)
        (root / "etc" / name).write_text(text)
    if os.geteuid() == 0:
        os.chown(root, user, user)
    root.chmod(0o755)
