"""No process, folder, mount or descriptor is left, however the owner ends."""

from __future__ import annotations

import contextlib
import gc
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import sandboxgym as sg
from tests.mechanisms.process_lab import answer, lab
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]


def descendants(of: int) -> dict[int, str]:
    """All processes below one, with their states."""
    found: dict[int, tuple[int, str]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            found[int(folder.name)] = (int(fields[1]), fields[0])
    below = {of}
    while more := {pid for pid, (parent, _) in found.items() if parent in below} - below:
        below |= more
    return {pid: found[pid][1] for pid in below - {of}}


def alive(pids) -> set[int]:
    return {pid for pid in pids if Path(f"/proc/{pid}").exists()}


def empty(folder: str) -> bool:
    """Whether nothing is left in the folder for temporary files; the folder is a mount point."""
    return not Path(folder).exists() or not list(Path(folder).iterdir())


@pytest.fixture
def env():
    before = descendants(os.getpid())
    env = lab()
    yield env
    env.close()
    del env
    gc.collect()
    wait_until(lambda: set(descendants(os.getpid())) <= set(before))


def workers(env) -> int:
    """How many processes there are in the nursery of an environment."""
    return len(descendants(os.getpid())) - 1


def test_a_template_ends_with_the_last_snapshot_that_holds_it(env):
    alone = workers(env)
    first = env.snapshot()
    same = first
    second = env.snapshot()
    assert workers(env) == alone + 2
    del first
    assert workers(env) == alone + 2
    del same
    wait_until(lambda: workers(env) == alone + 1)
    del second
    wait_until(lambda: workers(env) == alone)


def test_everything_ends_with_the_last_that_refers_to_it():
    before = set(descendants(os.getpid()))
    env = lab()
    (twin,) = sg.fork(env, 1)
    snapshot = twin.snapshot()
    folder = answer(env, "folder")
    env.close()
    del env
    assert answer(twin, "nothing") == ""
    del twin  # without being closed
    gc.collect()
    assert set(descendants(os.getpid())) > before
    del snapshot
    assert set(descendants(os.getpid())) == before
    assert empty(folder)


def test_references_in_circles_are_found_by_the_collector():
    before = set(descendants(os.getpid()))
    env = lab()
    snapshots = [env.snapshot() for _ in range(3)]
    circle = [env, snapshots]
    circle.append(circle)
    gc.disable()
    try:
        del env, snapshots, circle
        assert set(descendants(os.getpid())) > before
    finally:
        gc.enable()
    gc.collect()
    assert set(descendants(os.getpid())) == before


def test_two_hundred_rounds_leave_nothing(env):
    def state() -> tuple[int, int, int]:
        gc.collect()
        wait_until(lambda: "Z" not in descendants(os.getpid()).values())
        descriptors = len(list(Path("/proc/self/fd").iterdir()))
        mounts = Path("/proc/self/mounts").read_text().count("\n")
        return workers(env), descriptors, mounts

    env.step("write a text")
    snapshot = env.snapshot()
    env.restore(snapshot)
    before = state()
    for round_ in range(200):
        snapshot = env.snapshot()
        env.step("write a other")
        if round_ % 3 == 0:
            env.reset(seed=round_)
        env.restore(snapshot)
    assert answer(env, "read a") == "text"
    wait_until(lambda: workers(env) == before[0])
    assert state() == before


def test_the_nursery_has_no_zombies_while_it_lives(env):
    kept = [env.snapshot() for _ in range(5)]
    for snapshot in kept:
        env.restore(snapshot)
    del kept, snapshot
    wait_until(lambda: "Z" not in descendants(os.getpid()).values())


def test_children_and_daemons_of_the_environment_end_with_it():
    env = lab()
    daemon = answer(env, "daemon")
    env.step("child")
    children = set(descendants(os.getpid()))
    assert daemon in children
    env.close()
    del env
    gc.collect()
    wait_until(lambda: not alive(children))


def test_a_killed_nursery_is_noticed_and_its_folder_removed():
    env = lab()
    folder = answer(env, "folder")
    snapshot = env.snapshot()
    (nursery,) = (p for p in descendants(os.getpid()) if b"nursery" in command_line(p)
                  and parent(p) == os.getpid())  # fmt: skip
    others = set(descendants(os.getpid()))
    os.kill(nursery, signal.SIGKILL)
    assert answer(env, "nothing") == ""  # the worker itself is well
    env.restore(snapshot)
    env.close()
    env.reset(seed=1)  # in another nursery
    assert answer(env, "nothing") == ""
    env.close()
    del env, snapshot
    gc.collect()
    wait_until(lambda: not alive(others))
    assert empty(folder)


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def command_line(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def run(program: str, **kwargs) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kwargs,
    )  # fmt: skip


LEAVES_AT_EXIT = """
import sandboxgym as sg, gc
from tests.mechanisms.process_lab import answer, lab
env = lab()
twins = sg.fork(env, 3)
snapshots = [twin.snapshot() for twin in twins]
circle = [snapshots]; circle.append(circle)
print(answer(env, "folder"), answer(env, "pid"), flush=True)
{how}
"""


def test_nothing_is_left_when_all_are_killed_at_once():
    owner = run(BUSY.format(seed=1), start_new_session=True)
    assert owner.stdout is not None
    folder = owner.stdout.readline().strip()
    bred = descendants(owner.pid)
    for pid in (owner.pid, *sorted(bred)):  # the nursery, which would clean up, comes second
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    owner.wait()
    owner.stdout.close()
    owner.stderr.close()
    wait_until(lambda: not alive(bred))
    assert empty(folder)


@pytest.mark.parametrize(
    ("how", "code"), [("", 0), ("raise SystemExit(4)", 4), ("import os; os._exit(5)", 5)]
)
def test_nothing_is_left_when_the_owner_exits_with_live_snapshots(how, code):
    owner = run(LEAVES_AT_EXIT.format(how=how))
    out, errors = owner.communicate(timeout=60)
    folder, pid = out.split()
    assert (owner.returncode, errors) == (code, "")
    wait_until(lambda: empty(folder) and not Path(f"/proc/{pid}").exists())


def test_the_nursery_removes_a_folder_that_cannot_stay(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    owner = run(LEAVES_AT_EXIT.format(how="import os; os._exit(5)"))
    out, _ = owner.communicate(timeout=60)
    folder = out.split()[0]
    assert Path(folder).name.startswith("sandboxgym-")
    wait_until(lambda: not Path(folder).exists())


BUSY = """
import random, sandboxgym as sg
from tests.mechanisms.process_lab import answer, lab
env = lab(built="write a text")
print(answer(env, "folder"), flush=True)
dice, kept = random.Random({seed}), [env.snapshot()]
while True:
    env.step(dice.choice(["nothing", "write b text", "draw"]))
    kept.append(env.snapshot())
    env.restore(dice.choice(kept))
    if len(kept) > 6:
        kept.pop(dice.randrange(len(kept)))
    if dice.random() < 0.1:
        sg.fork(env, 1)
"""


def mounts_of_ours() -> list[str]:
    """What else is mounted on this machine comes and goes."""
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    return [mount for mount in mounts if "sandboxgym" in mount]


@pytest.mark.parametrize("owners", [3, pytest.param(24, marks=pytest.mark.slow)])
def test_nothing_is_left_after_the_owner_is_killed_at_any_moment(owners):
    dice = random.Random(7)
    mounts = mounts_of_ours()
    for seed in range(owners):
        owner = run(BUSY.format(seed=seed))
        assert owner.stdout is not None
        folder = owner.stdout.readline().strip()
        time.sleep(dice.random() * 0.5)
        bred = set(descendants(owner.pid))
        assert bred
        owner.kill()
        owner.wait()
        owner.stdout.close()
        owner.stderr.close()
        wait_until(lambda: not alive(bred) and empty(folder))  # noqa: B023
    assert mounts_of_ours() == mounts


KILLED_WHILE_STARTING = """
from tests.mechanisms.process_lab import lab
print("now", flush=True)
lab(built="sleep 0.2")
import time; time.sleep(60)
"""


@pytest.mark.parametrize("owners", [3, pytest.param(12, marks=pytest.mark.slow)])
def test_nothing_is_left_after_the_owner_is_killed_while_starting(tmp_path, owners):
    dice = random.Random(3)
    os.environ["TMPDIR"], before = str(tmp_path), os.environ.get("TMPDIR")
    try:
        for _ in range(owners):
            owner = run(KILLED_WHILE_STARTING)
            assert owner.stdout is not None
            owner.stdout.readline()
            time.sleep(dice.random() * 1.2)
            bred = set(descendants(owner.pid))
            owner.kill()
            owner.wait()
            owner.stdout.close()
            owner.stderr.close()
            wait_until(lambda: not alive(bred) and not list(tmp_path.iterdir()))  # noqa: B023
    finally:
        del os.environ["TMPDIR"]
        if before is not None:
            os.environ["TMPDIR"] = before


FORK_LETS_GO = """
import gc, os, sys
from tests.mechanisms.process_lab import answer, lab
env = lab()
snapshot = env.snapshot()
other = env.snapshot()
fork = os.fork()
if fork == 0:
    del env, snapshot
    gc.collect()
    sys.exit(0)  # lets go of `other`
assert os.waitpid(fork, 0)[1] == 0
for each in (snapshot, other):
    env.restore(each)
    answer(env, "nothing")
assert "replayed_steps" not in env.metrics
"""


def test_what_a_fork_of_the_owner_lets_go_of_stays_with_the_owner():
    owner = run(FORK_LETS_GO)
    _, errors = owner.communicate(timeout=60)
    assert (owner.returncode, errors) == (0, "")


OWNER_LETS_GO = """
import os, time
from tests.mechanisms.process_lab import answer, lab
env = lab()
snapshot = env.snapshot()
template = snapshot.held._process.pid
if os.fork() == 0:
    time.sleep(3600)
del snapshot
print(template, flush=True)
time.sleep(3600)
"""


def test_what_the_owner_lets_go_of_ends_though_a_fork_of_it_has_copies():
    owner = run(OWNER_LETS_GO)
    assert owner.stdout is not None
    template = int(owner.stdout.readline())
    wait_until(lambda: not alive([template]))
    for pid in descendants(owner.pid):
        if b"nursery" not in command_line(pid) and parent(pid) == owner.pid:
            os.kill(pid, signal.SIGKILL)
    owner.kill()
    owner.wait()
    owner.stdout.close()
    owner.stderr.close()


FORKED = """
import os, time
from tests.mechanisms.process_lab import answer, lab
env = lab()
snapshot = env.snapshot()
if os.fork() == 0:
    time.sleep(3600)
print(answer(env, "pid"), flush=True)
time.sleep(3600)
"""


def test_a_fork_of_the_owner_does_not_keep_the_workers_of_a_killed_owner():
    owner = run(FORKED)
    assert owner.stdout is not None
    worker = int(owner.stdout.readline())
    (copy,) = (p for p in descendants(owner.pid) if b"FORKED" not in command_line(p)
               and parent(p) == owner.pid and b"nursery" not in command_line(p))  # fmt: skip
    owner.kill()
    owner.wait()
    wait_until(lambda: not alive([worker]))
    assert alive([copy])
    os.kill(copy, signal.SIGKILL)
    owner.stdout.close()
    owner.stderr.close()
