"""What many episodes of a repository sandbox leave behind on the machine: nothing.

    python -m benchmarks.repo_leftovers --episodes 1000 --out repo_leftovers.json

Each episode writes files, leaves processes in the background, takes snapshots, forks, restores and
submits, and some are interrupted at a random moment of whatever they do. Counted before and after:
mounts, processes, control groups, folders of temporary files and shared memory, open files of this
process, and what its sandboxes still hold in memory.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sandboxgym as sg
from sandboxgym.core.errors import SandboxGymError
from sandboxgym.sandboxes.repo.backend import Limits
from sandboxgym.sandboxes.repo.bases import base_of_folder
from sandboxgym.sandboxes.repo.env import RepoEnv
from sandboxgym.sandboxes.repo.overlay.backend import OverlayBackend

COMMANDS = (
    "echo x >> log; mkdir -p a/b; mv a c; rm -r c",
    "sleep 1000 & echo started",
    "head -c 300000 /dev/urandom > data; ln data again; ln -sf data link",
    "git add -A; git -c user.name=a -c user.email=a@b commit -qm more; git status --short",
    "kill -9 -1",
    "cd /tmp; mkfifo pipe; yes | head -c 2000000",
)
SETTLE_SECONDS = 30


class Interrupted(BaseException):
    """What a user's Ctrl+C would be."""


def leftovers(episodes: int, seed: int = 0) -> dict[str, Any]:
    """Play episodes, and say what was there before and what is there after them."""
    dice = random.Random(seed)
    ends: Counter[str] = Counter()
    messages: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as scratch, temporary_folder(Path(scratch, "temporary")):
        tree = Path(scratch, "tree")
        tree.mkdir()
        (tree / "a.py").write_text("a = 1\n")
        base = base_of_folder(tree, cache=Path(scratch, "cache"))
        OverlayBackend().close()  # what an earlier process left is not ours
        before = machine()
        began = time.perf_counter()
        with OverlayBackend(Limits(seconds=20)) as backend:
            inside = held(backend, base)
            for _ in range(episodes):
                end, message = episode(backend, base, dice)
                ends[end] += 1
                messages.setdefault(end, message)
            taken = time.perf_counter() - began
            inside_after = settled(lambda: held(backend, base), inside)
        after = settled(machine, before)
    return {
        "episodes": episodes,
        "seed": seed,
        "ends": dict(sorted(ends.items())),
        "first_messages": {end: message for end, message in messages.items() if message},
        "seconds": round(taken, 1),
        "left": {name: after[name] - before[name] for name in before},
        "left_in_memory": {name: inside_after[name] - inside[name] for name in inside},
    }


def episode(backend: OverlayBackend, base: Any, dice: random.Random) -> tuple[str, str]:
    """One episode; how it ended, and what was said of an error."""
    env = RepoEnv(base, test_command="true", backend=backend, allow_process_loss=True)
    forks: list[Any] = []
    try:
        with interrupted_after(dice.uniform(0, 0.5) if dice.random() < 0.3 else None):
            env.reset(seed=1)
            moments = [env.snapshot()]
            for _ in range(dice.randrange(1, 4)):
                env.step(dice.choice(COMMANDS))
                moments.append(env.snapshot())
            forks += sg.fork(env, dice.randrange(3))
            for fork in forks:
                fork.step(dice.choice(COMMANDS))
            env.restore(dice.choice(moments))
            env.step({"submit": True})
            return "submitted", ""
    except Interrupted:
        return "interrupted", ""
    except SandboxGymError as error:
        return type(error).__name__, "".join(traceback.format_exception(error)[-60:])
    finally:
        for one in (env, *forks):
            one.close()


@contextlib.contextmanager
def interrupted_after(seconds: float | None) -> Iterator[None]:
    """Raise `Interrupted` in whatever is done after so many seconds."""

    def interrupt(*_: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds or 0)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def temporary_folder(folder: Path) -> Iterator[None]:
    """Have temporary files made in a folder, in which others make none."""
    folder.mkdir()
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before


def machine() -> Counter[str]:
    """How much there is of what could be left behind."""
    gc.collect()
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    groups = Path("/sys/fs/cgroup")
    mine = "sandboxgym-*"
    return Counter(
        {
            "mounts": sum("docker" not in mount for mount in mounts),  # those come and go
            "processes": len(below(os.getpid())),
            "control groups": len([*groups.glob(mine), *groups.glob(f"*/{mine}")]),
            "temporary folders": len(list(Path(tempfile.gettempdir()).iterdir())),
            "shared memory": len(list(Path("/dev/shm").glob("tmp*"))),
            "open files": len(list(Path("/proc/self/fd").iterdir())),
        }
    )


def below(pid: int) -> list[int]:
    """All that a process has started, directly or not, and that has not ended."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        children = [int(c) for task in tasks for c in (task / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [*children, *(further for child in children for further in below(child))]


def held(backend: OverlayBackend, base: Any) -> Counter[str]:
    """What the backend's file system in memory holds, and how many processes it has."""
    gc.collect()
    with backend.create(base) as sandbox:
        used = sandbox.run("df --output=used,iused / | tail -n 1").output.split()
        processes = len(below(backend.keeper_pid))
    return Counter({"kilobytes": int(used[0]), "files": int(used[1]), "processes": processes})


def settled(count: Any, wanted: Counter[str]) -> Counter[str]:
    """Count again until nothing is left: what was closed ends on its own."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while (counted := count()) != wanted and time.monotonic() < deadline:
        time.sleep(0.2)
    return counted


def main() -> None:
    """Play, print what is left, and end with 1 where it is anything."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="write the JSON here too")
    args = parser.parse_args()
    result = leftovers(args.episodes, args.seed)
    text = json.dumps(result, indent=2)
    print(text)
    if args.out:
        args.out.write_text(text + "\n")
    if any(result["left"].values()) or any(result["left_in_memory"].values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
