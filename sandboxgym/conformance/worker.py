"""Another process that makes the environment, does what it is asked and writes down what it saw.

Request and answer are files of plain data (`sandboxgym.core.codec`), so that nothing an environment
prints can disturb them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from sandboxgym.conformance.outcome import CheckFailedError, CheckNotRunError
from sandboxgym.conformance.source import Source, from_reference
from sandboxgym.conformance.subject import Seen, Subject
from sandboxgym.core import codec
from sandboxgym.core.snapshot import Snapshot

TIMEOUT_SECONDS = 600

Job = dict[str, Any]
"""`seed` or `snapshot` (bytes) to start from, and the `actions` to take then."""


def play_elsewhere(
    source: Source, jobs: Sequence[Job], hash_seeds: Sequence[int]
) -> list[list[list[Seen]]]:
    """Do the jobs in one new process for each hash seed, all at once.

    Returns:
        For each process, for each job, what was seen: of the start and after each action.

    Raises:
        CheckNotRunError: Another process cannot make the environment.
        CheckFailedError: A process failed; the message has its last words.
    """
    if source.reference is None:
        raise CheckNotRunError(source.obstacle)
    request = codec.encode({"source": source.reference, "jobs": list(jobs)})
    with tempfile.TemporaryDirectory(prefix="sandboxgym-check-") as folder, ExitStack() as cleanup:
        processes = []
        for hash_seed in hash_seeds:
            files = [Path(folder, f"{name}-{hash_seed}") for name in ("request", "answer")]
            files[0].write_bytes(request)
            processes.append((_start(files, hash_seed, cleanup), hash_seed, files[1]))
        return [_answer(*started) for started in processes]


def _start(files: list[Path], hash_seed: int, cleanup: ExitStack) -> subprocess.Popen[str]:
    path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
    process = subprocess.Popen(
        [sys.executable, "-m", "sandboxgym.conformance.worker", *map(str, files)],
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    cleanup.enter_context(process)  # closes its pipe and waits for it
    cleanup.callback(process.kill)
    return process


def _answer(process: subprocess.Popen[str], hash_seed: int, answer: Path) -> list[list[Seen]]:
    name = f"the process with PYTHONHASHSEED={hash_seed}"
    try:
        _, errors = process.communicate(timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        raise CheckFailedError(f"{name} did not end within {TIMEOUT_SECONDS} s") from None
    if process.returncode != 0:
        last_words = errors.strip().rpartition("\n")[2] or f"exit status {process.returncode}"
        raise CheckFailedError(f"{name} failed: {last_words}")
    seen: list[list[Seen]] = codec.decode(answer.read_bytes())
    return seen


def main(request: str, answer: str) -> None:
    """Be the other process."""
    task = codec.decode(Path(request).read_bytes())
    make = from_reference(task["source"])
    seen = [_do(Subject(make()), job) for job in task["jobs"]]
    Path(answer).write_bytes(codec.encode(seen))


def _do(subject: Subject, job: Job) -> list[Seen]:
    if "snapshot" in job:
        start = subject.restore(Snapshot.from_bytes(job["snapshot"]))
    else:
        start = subject.reset(job["seed"])
    seen = [start, *subject.play(job["actions"])]
    subject.close()
    return seen


if __name__ == "__main__":
    main(*sys.argv[1:])
