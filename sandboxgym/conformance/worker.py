"""Another interpreter that makes the environment, does what it is asked and writes what it saw.

Request and answer are files of plain data (`sandboxgym.core.codec`), so that nothing an environment
prints can disturb them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandboxgym.conformance.journal import Journal
from sandboxgym.conformance.lab import Lab
from sandboxgym.conformance.outcome import CheckFailedError, CheckNotRunError
from sandboxgym.conformance.source import from_reference
from sandboxgym.conformance.subject import Seen, Subject
from sandboxgym.core import codec
from sandboxgym.core.errors import SnapshotError
from sandboxgym.core.snapshot import Snapshot

TIMEOUT_SECONDS = 600
POLL_SECONDS = 0.005
KEPT_ERRORS = 4000

Job = dict[str, Any]
"""`seed` or `snapshot` (bytes) to start from, and the `actions` to take then."""

Answer = list[Seen] | str
"""What was seen of the start and after each action; or why the start was refused, in words."""


def play_elsewhere(
    lab: Lab, jobs: Sequence[Job], hash_seeds: Sequence[int], *, at_once: bool = False
) -> list[list[Answer]]:
    """Do the jobs in one new interpreter for each hash seed.

    Args:
        lab: Has the environment.
        jobs: What each of them does.
        hash_seeds: Their values of PYTHONHASHSEED.
        at_once: Begin with the jobs when all of them have made their environments.

    Returns:
        For each process, for each job, the answer.

    Raises:
        CheckNotRunError: Another process cannot make the environment.
        CheckFailedError: A process failed; the message has its last words.
    """
    if lab.source.reference is None:
        raise CheckNotRunError(lab.source.obstacle)
    with tempfile.TemporaryDirectory(prefix="sandboxgym-check-") as folder, ExitStack() as cleanup:
        shared = {"source": lab.source.reference, "jobs": list(jobs)}
        start = Path(folder, "start") if at_once else None
        workers = []
        for number, hash_seed in enumerate(hash_seeds):
            place = Path(folder, str(number))
            place.mkdir()
            request = {**shared, "start": str(start) if start else None}
            place.joinpath("request").write_bytes(codec.encode(request))
            process = _start(place, hash_seed, lab, cleanup)
            workers.append(_Worker(process, f"the process with PYTHONHASHSEED={hash_seed}", place))
        for worker in workers:
            worker.wait_until_ready(lab.journal)
        if start is not None:
            start.touch()
        return [worker.answers() for worker in workers]


@dataclass
class _Worker:
    """A process that does jobs, as the one sees it that asked for them."""

    process: subprocess.Popen[bytes]
    name: str
    place: Path

    def wait_until_ready(self, journal: Journal) -> None:
        """Wait until it has made its environment, or has failed to.

        Until then an interpreter starts and imports, which is no call on the environment.
        """
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not self.place.joinpath("ready").exists() and self.process.poll() is None:
            if time.monotonic() > deadline:
                raise CheckFailedError(f"{self.name} was not ready within {TIMEOUT_SECONDS} s")
            journal.beat()
            time.sleep(POLL_SECONDS)

    def answers(self) -> list[Answer]:
        """What it saw."""
        try:
            status = self.process.wait(timeout=TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            raise CheckFailedError(f"{self.name} did not end within {TIMEOUT_SECONDS} s") from None
        if status != 0:
            raise CheckFailedError(f"{self.name} failed: {self._last_words(status)}")
        found: list[Answer] = codec.decode(self.place.joinpath("answer").read_bytes())
        return found

    def _last_words(self, status: int) -> str:
        with self.place.joinpath("errors").open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - KEPT_ERRORS))
            lines = file.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"exit status {status}"


def _start(place: Path, hash_seed: int, lab: Lab, cleanup: ExitStack) -> subprocess.Popen[bytes]:
    shared = [] if lab.journal.descriptor is None else [lab.journal.descriptor]
    errors = cleanup.enter_context(place.joinpath("errors").open("wb"))
    process = subprocess.Popen(
        [sys.executable, "-m", "sandboxgym.conformance.worker", str(place), *map(str, shared)],
        env={
            **os.environ,
            "PYTHONHASHSEED": str(hash_seed),
            "PYTHONPATH": os.pathsep.join(lab.import_path),
        },
        pass_fds=shared,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=errors,
    )
    cleanup.enter_context(process)  # waits for it
    cleanup.callback(process.kill)
    return process


def main(place: str, journal: str | None = None) -> None:
    """Be the other interpreter."""
    folder = Path(place)
    task = codec.decode(folder.joinpath("request").read_bytes())
    make = from_reference(task["source"])
    log = Journal(None if journal is None else int(journal))
    name = f"process {os.getpid()}"
    subject = Subject(make(), log, name)
    folder.joinpath("ready").touch()
    if task["start"] is not None:
        while not Path(task["start"]).exists():
            time.sleep(POLL_SECONDS)
    answers = []
    for job in task["jobs"]:
        answers.append(_do(subject, job))
        subject = Subject(make(), log, name)
    subject.close()
    folder.joinpath("answer").write_bytes(codec.encode(answers))


def _do(subject: Subject, job: Job) -> Answer:
    try:
        if "snapshot" in job:
            seen = [subject.restore(Snapshot.from_bytes(job["snapshot"]))]
        else:
            seen = [subject.reset(job["seed"])]
    except SnapshotError as error:
        return str(error)
    seen += subject.play(job["actions"])
    subject.close()
    return seen


if __name__ == "__main__":
    main(*sys.argv[1:])
