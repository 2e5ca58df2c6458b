"""Nothing is left of sandboxes, however their processes end."""

from __future__ import annotations

import contextlib
import json
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
from sandboxgym.sandboxes.repo.overlay import owning, wire
from sandboxgym.sandboxes.repo.overlay.backend import OverlayBackend
from sandboxgym.sandboxes.repo.overlay.holder import WAITING, is_doomed
from tests.sandboxes.repo.conftest import make_overlay_backend

ROOT = Path(__file__).parents[3]
LIMITS = Limits(seconds=20.0)
SLOW = [pytest.mark.slow, pytest.mark.timeout(1800)]
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
        children = direct_children(todo.pop())
        found += children
        todo += children
    return found


def direct_children(pid: int) -> list[int]:
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


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
    ours = [line for line in lines if "docker" not in line]  # of other tests, which run beside
    return "\n".join(line for line in ours if "overlay" in line or "/dev/shm" in line)


def groups() -> list[str]:
    root = Path("/sys/fs/cgroup")
    return [str(path) for path in (*root.glob("sandboxgym-*"), *root.glob("*/sandboxgym-*"))]


def files_of_the_machine() -> set[str]:
    return {str(path) for path in Path("/dev/shm").glob("tmp*")}


def groups_of(keepers: set[int]) -> list[str]:
    return [group for group in groups() if int(Path(group).name.split("-")[1]) in keepers]


@pytest.fixture
def owner(tmp_path, base_cache):
    """Starts processes that use sandboxes without end, and leaves none of them running."""
    (tmp_path / "tree").mkdir()
    started = []

    def start():
        process = subprocess.Popen(
            [sys.executable, "-c", OWNER, tmp_path / "tree", base_cache],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        started.append(process)
        assert process.stdout.readline() == "begun\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate(timeout=60)


@pytest.mark.parametrize("whom", ["owner", "keeper", "warden"])
@pytest.mark.parametrize("times", [2, pytest.param(15, marks=SLOW)])
def test_nothing_is_left_after_a_kill_at_any_moment(whom, times, owner):
    make_overlay_backend(LIMITS).close()  # or skip
    dice = random.Random(f"{whom} {times}")
    mounted, files = mounts(), files_of_the_machine()
    keepers = set()
    for _ in range(times):
        process = owner()
        time.sleep(dice.uniform(0, 0.5))
        [keeper] = direct_children(process.pid)
        keepers.add(keeper)
        processes = {pid: start_time(pid) for pid in descendants(process.pid)}
        while process.poll() is None:  # a warden whose work is done is not missed: then the next
            wardens = direct_children(keeper)
            victims = {"owner": [process.pid], "keeper": [keeper], "warden": wardens}[whom]
            if victims:
                processes |= {pid: start_time(pid) for pid in descendants(process.pid)}
                with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
                    os.kill(dice.choice(victims), signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=1)  # the others end the owner by an error
        assert wait_until_gone(processes) == []
    assert (mounts(), files_of_the_machine()) == (mounted, files)
    make_overlay_backend(LIMITS).close()
    assert groups_of(keepers) == []


def used_there(sandbox) -> str:
    return sandbox.run("df --output=used,iused / | tail -n 1").output


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_many_rounds_leave_nothing(base):
    with make_overlay_backend(LIMITS) as backend:
        keeper = backend.keeper_pid
        sandbox = backend.create(base)
        sandbox.run("echo x > file")
        used = used_there(sandbox)
        descriptors = open_descriptors()
        for number in range(15):
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
        warden = sorted(direct_children(backend.keeper_pid))[-1]
        os.kill(warden, signal.SIGKILL)
        with pytest.raises(SandboxError, match="lost"):
            lost.run("true")
        with backend.fork(moment) as again:
            assert again.run("echo on").output == "on\n"
        assert kept.run("echo $x").output == "1\n"


@pytest.mark.parametrize("program", ["/bwrap", "/none/bwrap"])
def test_a_bubblewrap_that_is_not_there_is_told(program):
    make_overlay_backend(LIMITS).close()  # or skip
    with pytest.raises(SandboxError, match="No such file or directory"):
        OverlayBackend(LIMITS, bubblewrap=program)


def test_a_lost_keeper_is_told(base):
    backend = make_overlay_backend(LIMITS)
    sandbox = backend.create(base)
    moment = sandbox.snapshot()
    os.kill(backend.keeper_pid, signal.SIGKILL)
    backend._keeper.process.wait()
    with pytest.raises(SandboxError, match="lost"):
        sandbox.run("true")
    with pytest.raises(SandboxError, match="lost"):
        backend.fork(moment)
    backend.close()


class Interrupted(BaseException):
    pass


def interrupt(*_):
    raise Interrupted


def test_an_interrupt_gives_no_answer_to_the_wrong_question(base):
    with make_overlay_backend(LIMITS) as backend:
        kept, interrupted = backend.create(base), backend.create(base)
        moment = interrupted.snapshot()
        before = signal.signal(signal.SIGALRM, interrupt)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            with pytest.raises(Interrupted):
                interrupted.run("sleep 5; echo late")
        finally:
            signal.signal(signal.SIGALRM, before)
        with pytest.raises(SandboxError, match="closed"):
            interrupted.run("echo next")
        with backend.fork(moment) as again:
            assert again.run("echo on").output == "on\n"
        assert kept.run("echo kept").output == "kept\n"


@contextlib.contextmanager
def interrupted_at_line(number):
    """Raise `Interrupted` before so many lines of the owner's end, as a handler of signals does.

    Signals come to any thread of the process, numerical libraries' too, so that it is of no use if
    the main one blocks them.
    """
    parts = (owning.__file__, wire.__file__)
    left = number

    def trace(frame, event, _):
        nonlocal left
        if frame.f_code.co_filename not in parts:
            return None
        left -= event == "line"
        if left == 0:
            sys.settrace(None)
            raise Interrupted
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


def test_an_interrupt_at_any_line_of_asking_harms_no_other_sandbox(base):
    with make_overlay_backend(LIMITS) as backend:
        kept = backend.create(base)
        moment = kept.snapshot()
        interrupted, number = True, 0
        while interrupted:
            number += 1
            try:
                with interrupted_at_line(number):
                    backend.fork(moment).close()
                interrupted = False
            except Interrupted:
                pass
        assert number > 10
        with backend.fork(moment) as twin:
            assert twin.run("echo on").output == "on\n"
        assert kept.run("echo kept").output == "kept\n"


def test_a_holder_that_was_killed_does_not_live_before_it_has_ended():
    """On the processor of who killed it, where it comes to end only when that one waits."""
    make_overlay_backend(LIMITS).close()  # or skip
    allowed = os.sched_getaffinity(0)
    with subprocess.Popen([WAITING], stdin=subprocess.PIPE) as process:
        try:
            os.sched_setaffinity(0, {min(allowed)})
            os.sched_setaffinity(process.pid, {min(allowed)})
            os.sched_setscheduler(process.pid, os.SCHED_IDLE, os.sched_param(0))
            assert not is_doomed(process.pid)
            process.kill()
            assert is_doomed(process.pid)
        finally:
            os.sched_setaffinity(0, allowed)
            process.kill()
    assert is_doomed(process.pid)


def test_a_forked_process_can_use_and_forget_nothing_of_its_parents(base):
    with make_overlay_backend(LIMITS) as backend:
        sandbox = backend.create(base)
        sandbox.run("echo kept > file")
        moments = [sandbox.snapshot()]
        child = os.fork()
        if child == 0:
            refused = 0
            for call in (lambda: sandbox.run("true"), lambda: backend.fork(moments[0])):
                try:
                    call()
                except SandboxError:
                    refused += 1
            moments.clear()
            sandbox.close()
            backend.close()
            os._exit(refused)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
        with backend.fork(moments[0]) as twin:
            assert twin.run("cat file").output == "kept\n"
        assert sandbox.run("cat file").output == "kept\n"


def test_a_backend_ends_while_a_forked_process_has_its_connections(base):
    backend = make_overlay_backend(LIMITS)
    backend.create(base)
    child = os.fork()
    if child == 0:
        signal.pause()
    try:
        backend.close()
        assert start_time(backend.keeper_pid) is None
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@pytest.mark.parametrize("episodes", [8, pytest.param(200, marks=SLOW)])
def test_episodes_leave_nothing_however_they_end(episodes):
    make_overlay_backend(LIMITS).close()  # or skip
    program = [
        sys.executable,
        "-m",
        "benchmarks.repo_leftovers",
    ]  # this process holds shared things
    options = ["--episodes", str(episodes), "--seed", str(episodes)]
    done = subprocess.run(
        [*program, *options], cwd=ROOT, capture_output=True, text=True, check=False, timeout=1800
    )
    assert done.stdout, done.stderr
    result = json.loads(done.stdout)
    assert set(result["left"].values()) == {0}, result
    assert set(result["left_in_memory"].values()) == {0}, result
