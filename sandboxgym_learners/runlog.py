"""The run directory: everything a training run leaves behind, written as it goes.

```
RUN_DIR/
├── config.json        the configuration, and the versions of what it ran with
├── updates.csv        a row an update, see `updates.Update`; same configuration, same bits
├── updates.jsonl      the same rows, one JSON object a line, null for what is not known
├── timings.csv        a row an update, see `updates.Timing`; seconds, so different in every run
├── trees/000010.json  every n-th update, its first tree: {"update", "algo", "task", "tree"}
├── tensorboard/       the numbers of updates.csv as event files
├── start/             the policy before the first update, in the format of transformers
├── best/              the one with the highest success on held-out tasks, the first if several
├── policy/            the policy after the last update; there only when the run is complete
├── checkpoint.pt      what `--resume` goes on from
└── writer.lock        held by the process that trains here, see `runlock`
```

Row 0 of `updates.csv` stands for the policy before the first update: it has an evaluation and
nothing else. In a CSV file, what is not known is an empty field. "tree" in a tree file is what
`tree.Group.to_json` gives, with the prompt, candidates, action, observation, entropy, advantage and
weight of every decision; `tree.Group.from_json` reads it back.

A run that was killed may have written rows after its last checkpoint, the last of them in part.
`RunLog.resume` cuts them off, so that the files of a resumed run are those of an uninterrupted one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, fields
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from sandboxgym.core.errors import MissingDependencyError
from sandboxgym_learners.runlock import LOCK, RunDirectoryError, hold
from sandboxgym_learners.tree import Group
from sandboxgym_learners.updates import Timing, Update


class RunLog:
    """Writes a run directory, alone. Rows reach the disk as soon as they are written."""

    def __init__(
        self, folder: Path, held: IO[str], writer: Any = None, *, first_update: int = 0
    ) -> None:
        """Go on writing in `folder`, which `create` or `resume` has prepared and holds."""
        self.folder = folder
        self._held = held
        self._board = None
        if writer is not None:
            self._board = writer(str(folder / "tensorboard"), purge_step=first_update)

    @classmethod
    def create(
        cls, folder: Path, config: dict[str, Any], *, tensorboard: bool, restart: bool = False
    ) -> RunLog:
        """Begin a run in a directory that is empty or not there.

        Args:
            folder: The directory.
            config: For `config.json`.
            tensorboard: Write event files.
            restart: The directory may also hold a run, which is begun anew.

        Raises:
            RunDirectoryError: There is something in it, or another process trains there.
            MissingDependencyError: TensorBoard is asked for and not installed.
        """
        writer = _event_writer_class() if tensorboard else None
        restarts = restart and saved_config(folder) is not None
        if folder.exists() and not restarts and (not folder.is_dir() or _holds_something(folder)):
            raise RunDirectoryError(
                f"{folder} is not an empty directory: choose another --out, or go on with the run "
                "in it by --resume"
            )
        folder.mkdir(parents=True, exist_ok=True)
        held = hold(folder)
        write_config(folder, config)  # first, so that whatever is cut off later can be resumed
        log = cls(folder, held, writer)
        for name, row in (("updates.csv", Update), ("timings.csv", Timing)):
            header = ",".join(field.name for field in fields(row))
            write_atomically(folder / name, header.encode() + b"\n")
        write_atomically(folder / "updates.jsonl", b"")
        (folder / "trees").mkdir(exist_ok=True)
        return log

    @classmethod
    def resume(cls, folder: Path, *, last_update: int, tensorboard: bool) -> RunLog:
        """Go on after `last_update`, removing what was written about later ones.

        Raises:
            RunDirectoryError: Another process trains there, or rows are missing.
        """
        writer = _event_writer_class() if tensorboard else None
        held = hold(folder)
        for name in ("updates.csv", "timings.csv"):
            _cut(folder / name, keep=last_update + 2)  # the header, and row 0
        _cut(folder / "updates.jsonl", keep=last_update + 1)
        for path in (folder / "trees").glob("[0-9]*.json"):
            if int(path.stem) > last_update:
                path.unlink()
        return cls(folder, held, writer, first_update=last_update + 1)

    def write(self, update: Update, timing: Timing) -> None:
        """Add the row of an update to all files."""
        values = asdict(update)
        _append(self.folder / "updates.csv", _csv_line(values.values()))
        _append(self.folder / "updates.jsonl", json.dumps(values) + "\n")
        _append(self.folder / "timings.csv", _csv_line(asdict(timing).values()))
        if self._board is None:
            return
        for name, value in values.items():
            if name != "update" and value is not None:
                self._board.add_scalar(name, value, update.update)
        self._board.flush()

    def write_tree(self, update: int, *, algo: str, task: str, tree: Group) -> None:
        """Keep one tree of an update, for people to look at."""
        content = {"update": update, "algo": algo, "task": task, "tree": tree.to_json()}
        path = self.folder / "trees" / f"{update:06d}.json"
        write_atomically(path, json.dumps(content).encode())

    def close(self) -> None:
        """Finish the event files, and let others write."""
        if self._board is not None:
            self._board.close()
        self._held.close()

    def __enter__(self) -> RunLog:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def write_config(folder: Path, config: dict[str, Any]) -> None:
    """Write the configuration of a run, and the versions of what it runs with."""
    write_atomically(folder / "config.json", json.dumps(config, indent=2).encode() + b"\n")


def saved_config(folder: Path) -> dict[str, Any] | None:
    """The configuration of the run in a folder; None where there is none of ours."""
    try:
        content = json.loads((folder / "config.json").read_bytes())
    except (OSError, ValueError):
        return None
    config = content.get("config") if isinstance(content, dict) else None
    return config if isinstance(config, dict) else None


def has_rows(folder: Path) -> bool:
    """Whether the run in a folder has got as far as its start, which may have taken long."""
    path = folder / "updates.csv"
    return path.is_file() and len(path.read_bytes().splitlines()) > 1


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a crash at any moment leaves the old or the new content, whole."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)  # on a full disk it takes the place of what is whole
        raise


def _event_writer_class() -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise MissingDependencyError(
            'TensorBoard is not installed: pip install "sandboxgym[learners]", or go without it by '
            "--no-tensorboard"
        ) from error
    return SummaryWriter


def _holds_something(folder: Path) -> bool:
    """Whether there is more in a folder than a lock and a first file that was cut off."""
    ours = (path.name == LOCK or path.name.endswith(".tmp") for path in folder.iterdir())
    return not all(ours)


def _csv_line(values: Iterable[float | None]) -> str:
    """Numbers in their shortest form that reads back to the same bits."""
    return ",".join("" if value is None else repr(value) for value in values) + "\n"


def _append(path: Path, line: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(line)


def _cut(path: Path, *, keep: int) -> None:
    """Keep the first lines of a file."""
    lines = path.read_bytes().splitlines(keepends=True) if path.is_file() else []
    if len(lines) < keep or not lines[keep - 1].endswith(b"\n"):
        raise RunDirectoryError(
            f"{path} ends before the last checkpoint ({len(lines)} lines, not {keep}), so the run "
            "cannot go on as if nothing had happened: start again in another --out"
        )
    write_atomically(path, b"".join(lines[:keep]))
