"""What must hold for whatever bytes are read: an answer or a `SandboxGymError`, and nothing else.

`watch` makes the interpreter report what reading does behind the scenes. From then on, a read that
compiles, executes, imports or (for a snapshot file) opens anything is a finding, as is one that
takes longer than a second of the processor's time.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import sandboxgym as sg
from sandboxgym.core.digest import first_difference
from sandboxgym.core.errors import StateEncodingError
from sandboxgym.store.manifest import Manifest, Pack, save

MAX_SECONDS = 1.0
MAX_BYTES = 2**20
FORBIDDEN = (
    "compile", "exec", "import", "os.system", "os.exec", "os.posix_spawn", "os.fork",
    "subprocess.Popen", "pickle.find_class", "marshal.loads", "ctypes.dlopen", "socket.connect",
)  # fmt: skip


class Finding(BaseException):
    """Reading did what it must not do. (No `Exception`, so that nothing takes it for its own.)"""


_forbidden: tuple[str, ...] = ()
_seen: list[str] = []
_watching = False


def watch() -> None:
    """Have the interpreter report events; it cannot be asked to stop."""
    global _watching
    if not _watching:
        _watching = True
        sys.addaudithook(_note)


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if _forbidden and event in _forbidden:
        _seen.append(f"{event}{arguments!r:.200}")


@contextlib.contextmanager
def reading(*, opens: bool) -> Iterator[None]:
    """Hold what happens inside to the rules; a `SandboxGymError` is an answer."""
    global _forbidden
    assert _watching, "call watch() first"
    _seen.clear()
    _forbidden = FORBIDDEN if opens else (*FORBIDDEN, "open")
    started = time.process_time()
    try:
        with contextlib.suppress(sg.SandboxGymError):
            yield
    except Exception as error:
        raise Finding(f"it let a {type(error).__name__} escape: {error}") from error
    finally:
        _forbidden = ()
    seconds = time.process_time() - started
    if _seen:
        raise Finding(f"it did {_seen[0]}")
    if seconds > MAX_SECONDS:
        raise Finding(f"it took {seconds:.1f} s")


def check_file(data: bytes) -> bool:
    """Read a snapshot file. Whether it is one, in which case it has to survive another round."""
    found = None
    with reading(opens=False):
        found = sg.Snapshot.from_bytes(data, max_bytes=MAX_BYTES)
    if found is None:
        return False
    with contextlib.suppress(StateEncodingError):  # over the limits only once it is written anew
        again = sg.Snapshot.from_bytes(found.to_bytes())
        if first_difference(again.as_tree(), found.as_tree()) is not None:
            raise Finding("it did not survive another round")
    return True


def check_pack(pack: bytes, parent: Path | None = None, *, closed: bool = False) -> int:
    """Open a store with this pack and do everything with it. How many snapshots could be read."""
    folder = Path(tempfile.mkdtemp(dir=parent))
    try:
        for name in ("packs", "pins"):
            (folder / name).mkdir()
        (folder / "lock").touch()
        (folder / "packs" / Pack(1).name).write_bytes(pack)
        save(folder, Manifest(1, 2, (Pack(1, len(pack) if closed else None),)))
        return _use(folder)
    finally:
        shutil.rmtree(folder)


def _use(folder: Path) -> int:
    store = None
    with reading(opens=True):
        store = sg.SnapshotStore(folder, max_bytes=MAX_BYTES, create=False)
    if store is None:
        raise Finding("a store with an intact manifest could not be opened")
    readable = 0
    for key in store:
        with reading(opens=True):
            found = store.get(key)
            readable += 1
            if found.loaded is not True:
                raise Finding("a snapshot from a store would be restored without a check")
    with reading(opens=True):
        store.ls()
    with reading(opens=True):
        store.verify()
    with reading(opens=True):
        store.gc(drop_corrupt=True)
        faults = store.verify()
        if faults:
            raise Finding(f"after dropping what is corrupt there is still {faults[0]}")
        if [entry.key for entry in store.ls() if store.get(entry.key).step != entry.step]:
            raise Finding("ls and get do not agree")
    return readable


def check_manifest(text: bytes, parent: Path | None = None) -> None:
    """Open a store with this manifest."""
    folder = Path(tempfile.mkdtemp(dir=parent))
    try:
        for name in ("packs", "pins"):
            (folder / name).mkdir()
        (folder / "lock").touch()
        (folder / "store.json").write_bytes(text)
        with reading(opens=True):
            sg.SnapshotStore(folder, create=False).verify()
    finally:
        shutil.rmtree(folder)


def manifest_seed() -> bytes:
    """A manifest to start from."""
    return json.dumps({"format": 1, "next": 3, "packs": [{"number": 1, "bytes": 8}]}).encode()
