"""Nothing is left of sandboxes, however their processes end."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from sandboxgym.sandboxes.repo.backend import Limits, SandboxError
from tests.sandboxes.repo.conftest import make_overlay_backend

LIMITS = Limits(seconds=20.0)
OWNER = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    from sandboxgym.sandboxes.repo.bases import base_of_folder
    from sandboxgym.sandboxes.repo.overlay.backend import OverlayBackend

    base = base_of_folder(sys.argv[1], cache=Path(sys.argv[2]))
    backend = OverlayBackend()
    sandbox = backend.create(base)
    print("begun", flush=True)
    while True:
        sandbox.run("sleep 1000 & echo x >> log; mkdir -p a/b; mv a c; rm -r c")
        moment = sandbox.snapshot(allow_process_loss=True)
        twin = backend.fork(moment)
        twin.run("yes > /dev/null &")
        sandbox.restore(moment)
        twin.close()
    """
)


def descendants(pid: int) -> list[int]:
    found, todo = [], [pid]
    while todo:
        parent = todo.pop()
        try:
            tasks = list(Path(f"/proc/{parent}/task").iterdir())
            children = [int(c) for task in tasks for c in (task / "children").read_text().split()]
        except (FileNotFoundError, ProcessLookupError):
            continue
        found += children
        todo += children
    return found


def start_time(pid: int) -> str | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else fields[19]


def wait_until_gone(processes: dict[int, str | None]) -> list[int]:
    """Those of the processes that are still there after a while."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        left = [pid for pid, began in processes.items() if began and start_time(pid) == began]
        if not left:
            return []
        time.sleep(0.05)
    return left


def mounts() -> str:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return "\n".join(line for line in lines if "overlay" in line or "/dev/shm" in line)


def groups() -> list[str]:
    root = Path("/sys/fs/cgroup")
    return [str(path) for path in (*root.glob("sandboxgym-*"), *root.glob("*/sandboxgym-*"))]


def files_of_the_machine() -> set[str]:
    return {str(path) for path in Path("/dev/shm").iterdir()}


def groups_of(keepers: set[int]) -> list[str]:
    return [group for group in groups() if int(Path(group).name.split("-")[1]) in keepers]


@pytest.mark.parametrize("whom", ["owner", "keeper", "warden"])
def test_nothing_is_left_after_a_kill_at_any_moment(whom, tmp_path, base_cache):
    make_overlay_backend(LIMITS).close()  # or skip
    (tmp_path / "tree").mkdir()
    dice = random.Random(whom)
    mounted, files = mounts(), files_of_the_machine()
    keepers = set()
    for _ in range(7):
        with subprocess.Popen(
            [sys.executable, "-c", OWNER, tmp_path / "tree", base_cache],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as owner:
            assert owner.stdout is not None
            assert owner.stdout.readline() == "begun\n"
            time.sleep(dice.uniform(0, 0.5))
            below = descendants(owner.pid)
            keeper = below[0]
            keepers.add(keeper)
            wardens = [pid for pid in below[1:] if pid in direct_children(keeper)]
            processes = {pid: start_time(pid) for pid in descendants(owner.pid)}
            victim = {"owner": owner.pid, "keeper": keeper, "warden": dice.choice(wardens)}[whom]
            os.kill(victim, signal.SIGKILL)
            owner.wait(timeout=60)  # the others end the owner by an error
        assert wait_until_gone(processes) == []
    assert (mounts(), files_of_the_machine()) == (mounted, files)
    make_overlay_backend(LIMITS).close()
    assert groups_of(keepers) == []


def direct_children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


def used_there(sandbox) -> str:
    return sandbox.run("df --output=used,iused / | tail -n 1").output


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_many_rounds_leave_nothing(base):
    with make_overlay_backend(LIMITS) as backend:
        keeper = backend._process.pid
        sandbox = backend.create(base)
        sandbox.run("echo x > file")
        used = used_there(sandbox)
        descriptors = open_descriptors()
        for number in range(50):
            with backend.create(base) as other:
                other.run(f"echo {number} > file; mkdir -p d/e; sleep 1000 &")
                moment = other.snapshot(allow_process_loss=True)
                with backend.fork(moment) as twin:
                    assert twin.run("cat file").output == f"{number}\n"
        del moment, other, twin
        assert open_descriptors() == descriptors
        deadline = time.monotonic() + 20  # closed sandboxes end on their own
        while len(direct_children(keeper)) > 1 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert len(direct_children(keeper)) == 1
        while used_there(sandbox) != used and time.monotonic() < deadline:
            time.sleep(0.05)
        assert used_there(sandbox) == used
        assert len(groups_of({keeper})) <= 2
    assert groups_of({keeper}) == []
    assert start_time(keeper) is None


def test_a_lost_sandbox_says_so_and_harms_no_other(base):
    with make_overlay_backend(LIMITS) as backend:
        kept, lost = backend.create(base), backend.create(base)
        kept.run("x=1")
        moment = lost.snapshot()
        warden = sorted(direct_children(backend._process.pid))[-1]
        os.kill(warden, signal.SIGKILL)
        with pytest.raises(SandboxError, match="lost"):
            lost.run("true")
        with backend.fork(moment) as again:
            assert again.run("echo on").output == "on\n"
        assert kept.run("echo $x").output == "1\n"


def test_a_lost_keeper_is_told(base):
    backend = make_overlay_backend(LIMITS)
    sandbox = backend.create(base)
    moment = sandbox.snapshot()
    os.kill(backend._process.pid, signal.SIGKILL)
    backend._process.wait()
    with pytest.raises(SandboxError, match="lost"):
        sandbox.run("true")
    with pytest.raises(SandboxError, match="lost"):
        backend.fork(moment)
    backend.close()
