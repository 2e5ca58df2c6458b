"""What a command in an overlay sandbox may try, each time with what became of it."""

from __future__ import annotations

import os
import socket
import sys
import threading
from pathlib import Path

import pytest

import sandboxgym
from sandboxgym.core.errors import UncapturedStateError
from sandboxgym.sandboxes.repo.backend import Limits, SandboxError
from sandboxgym.sandboxes.repo.bases import base_of_folder
from tests.sandboxes.repo.conftest import make_overlay_backend
from tests.sandboxes.repo.contract import ONCE_IT_SLEEPS

MIB = 2**20
SMALL = Limits(
    seconds=20.0,
    memory=1024 * MIB,
    total_memory=200 * MIB,
    processes=40,
    file_size=16 * MIB,
    disk=48 * MIB,
)
PYTHON = f"{sys.base_prefix}/bin/python3"


@pytest.fixture(scope="module")
def backend():
    with make_overlay_backend(SMALL) as backend:
        yield backend


@pytest.fixture(scope="module")
def base(tmp_path_factory, base_cache):
    """A tree, with the Python that runs these tests, wherever that is."""
    tree = tmp_path_factory.mktemp("tree")
    (tree / "README").write_text("read me\n")
    return base_of_folder(tree, toolchains=[sys.base_prefix], cache=base_cache)


@pytest.fixture
def sandbox(backend, base):
    sandbox = backend.create(base)
    yield sandbox
    sandbox.close()


def python(sandbox, program: str) -> str:
    done = sandbox.run(f"{PYTHON} -", stdin=program.encode())
    return done.output


def test_a_toolchain_runs_although_its_user_could_not_see_it_outside(sandbox):
    assert python(sandbox, "print(6 * 7)") == "42\n"


class TestTheMachine:
    def test_its_files_are_not_there(self, sandbox, tmp_path):
        (tmp_path / "secret").write_text("secret")
        assert sandbox.run(f"cat {tmp_path}/secret").returncode != 0
        for root in ("/proc/1/root", "/proc/1/cwd", "/proc/2/root", "/proc/self/root"):
            done = sandbox.run(f"cat {root}/../../..{tmp_path}/secret {root}{tmp_path}/secret")
            assert "secret" not in done.output.replace("/secret", "")

    def test_where_its_files_are_is_not_told(self, sandbox, base):
        told = sandbox.run("cat /proc/mounts /proc/self/mountinfo /proc/1/cmdline", output=10**6)
        assert str(base.root) not in told.output

    def test_solutions_of_our_own_tasks_are_not_in_a_folder_that_is_shown(
        self, backend, base_cache, tmp_path
    ):
        package = Path(sandboxgym.__file__).parent
        base = base_of_folder(tmp_path, toolchains=[package], cache=base_cache)
        with backend.create(base) as sandbox:
            assert sandbox.run(f"ls {package}/sandboxes/repo/env.py").returncode == 0
            looked = sandbox.run(
                f"ls -A {package}/sandboxes/repo/tasks; grep -r '+++ b/' {package}"
            )
            assert "tasks.jsonl" not in looked.output
            moment = sandbox.snapshot()
            assert "tasks.jsonl" not in sandbox.run(f"ls -A {package}/sandboxes/repo/tasks").output
            sandbox.restore(moment)
            assert sandbox.run(f"ls -A {package}/sandboxes/repo/tasks").output == ""

    def test_nothing_of_it_can_be_linked_to(self, sandbox):
        assert sandbox.run("ln /usr/bin/env mine").returncode != 0

    @pytest.mark.parametrize(
        "command",
        [
            "touch /usr/mine",
            "chmod 777 /usr/bin/env",
            "echo x >> /usr/bin/env",
            "rm /etc/ld.so.cache",
            "mv /usr /mine",
            "chmod 755 /proc/1/exe",
            "chmod 755 /proc/2/exe",
            "touch /proc/1/exe",
            "echo x > /proc/1/exe",
            "echo x > /proc/sys/kernel/hostname",
            "echo b > /proc/sysrq-trigger",
            "touch /dev/mine",
        ],
    )
    def test_nothing_of_it_can_be_written_to(self, sandbox, command):
        done = sandbox.run(command)
        assert done.returncode != 0
        assert any(
            reason in done.output
            for reason in ("Read-only", "denied", "not permitted", "busy", "No such file")
        )

    def test_its_processes_cannot_be_seen_or_reached(self, sandbox):
        done = sandbox.run(f"kill -9 {os.getpid()}; ls -d /proc/{os.getpid()}; kill -9 1; echo on")
        assert "No such process" in done.output or os.getpid() < 100
        assert done.output.endswith("on\n")
        seen = sandbox.run("cat /proc/[0-9]*/cmdline | tr '\\0' ' '").output
        assert "pytest" not in seen

    def test_nothing_of_the_owners_environment_is_there(self, backend, base, monkeypatch):
        monkeypatch.setenv("SANDBOXGYM_TEST_SECRET", "secret")
        with make_overlay_backend(SMALL) as backend, backend.create(base) as sandbox:
            seen = sandbox.run("cat /proc/[0-9]*/environ; env").output
        assert "secret" not in seen

    def test_there_are_no_sockets_of_it(self, sandbox, tmp_path):
        assert sandbox.run("find / -xdev -type s 2>/dev/null").output == ""
        assert sandbox.run("ls /var/run/docker.sock /run/docker.sock").returncode != 0

    def test_what_listens_there_cannot_be_reached(self, sandbox):
        heard = []
        with socket.socket(socket.AF_UNIX) as abstract, socket.socket() as network:
            abstract.bind(f"\0sandboxgym-{os.getpid()}")
            network.bind(("127.0.0.1", 0))
            for server in (abstract, network):
                server.listen()
                server.settimeout(3)
                threading.Thread(target=lambda s=server: heard.append(accepted(s))).start()
            program = (
                "import socket\n"
                f"for kind, where in ((1, '\\0sandboxgym-{os.getpid()}'),"
                f" (2, ('127.0.0.1', {network.getsockname()[1]}))):\n"
                "    try: socket.socket(kind).connect(where); print('connected')\n"
                "    except OSError as error: print('refused')\n"
            )
            assert python(sandbox, program) == "refused\nrefused\n"
            while len(heard) < 2:
                threading.Event().wait(0.05)
        assert heard == [False, False]


def accepted(server: socket.socket) -> bool:
    try:
        server.accept()
    except TimeoutError:
        return False
    return True


class TestPrivileges:
    def test_a_set_user_id_file_gives_none(self, sandbox):
        done = sandbox.run("cp /usr/bin/id . && chmod 6755 id && ./id -u; ls -l id | cut -c1-10")
        assert done.output.splitlines()[0] == "1000"

    @pytest.mark.parametrize(
        "command",
        [
            "unshare -U true",
            "unshare -m true",
            "mount -t tmpfs none /tmp",
            "mount --bind /usr /tmp",
            "umount /usr",
            "nsenter -t 1 -m true",
            "chroot / true",
            "mknod disk b 8 0",
            "mknod null c 1 3",
            "chown 0 README",
        ],
    )
    def test_what_needs_some_is_refused(self, sandbox, command):
        done = sandbox.run(f"PATH=$PATH:/usr/sbin; {command}")
        assert done.returncode not in (0, 127)

    def test_devices_are_only_those_that_are_harmless(self, sandbox):
        names = sandbox.run("find /dev -type c -o -type b").output.split()
        assert set(names) <= {
            *("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"),
            *("/dev/pts/ptmx", "/dev/console"),
        }

    @pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers are of x86_64")
    @pytest.mark.parametrize(
        ("name", "call"),
        [
            ("ptrace", "101, 16, 1, 0, 0"),
            ("process_vm_readv", "310, 1, 0, 0, 0, 0"),
            ("keyctl", "250, 0, -3, 0, 0"),
            ("bpf", "321, 0, 0, 0"),
            ("io_uring_setup", "425, 1, 0"),
            ("userfaultfd", "323, 0"),
            ("perf_event_open", "298, 0, 0, 0, 0, 0"),
            ("open_by_handle_at", "304, -100, 0, 0"),
            ("unshare", "272, 0x10000000"),
            ("setns", "308, 0, 0"),
            ("clone of a namespace", "56, 0x10000011, 0, 0, 0, 0"),
            ("fsopen", "430, b'tmpfs', 0"),
        ],
    )
    def test_a_system_call_that_no_program_needs_is_refused(self, sandbox, name, call):
        program = (
            "import ctypes\n"
            "libc = ctypes.CDLL(None, use_errno=True)\n"
            f"print(libc.syscall({call}), ctypes.get_errno())"
        )
        assert python(sandbox, program) == "-1 1\n"

    def test_nothing_can_be_typed_for_another(self, sandbox):
        program = (
            "import fcntl, os, pty, termios\n"
            "own, other = pty.openpty()\n"
            "try: fcntl.ioctl(other, termios.TIOCSTI, b'x')\n"
            "except OSError as error: print(error.errno)"
        )
        assert python(sandbox, program) == "1\n"


class TestLimits:
    def test_a_fork_bomb_ends_and_leaves_the_sandbox_usable(self, sandbox):
        done = sandbox.run("bomb() { bomb | bomb & }; bomb 2>/dev/null; sleep 1", timeout=5)
        assert {"processes", "seconds"} & set(done.limits_reached)
        assert sandbox.run("(echo a; echo b) | sort -r").output == "b\na\n"

    def test_processes_that_stay_and_fill_the_limit_are_ended(self, sandbox):
        done = sandbox.run("for i in $(seq 30); do sleep 1000 & done")
        assert done.limits_reached == ("processes",)
        assert sandbox.run("pgrep sleep | wc -l").output.strip() == "0"

    def test_a_process_is_refused_too_much_memory(self, sandbox):
        assert "MemoryError" in python(sandbox, "bytearray(2 * 2**30)")
        assert sandbox.run("echo on").output == "on\n"

    def test_processes_that_hold_too_much_together_are_ended(self, sandbox):
        program = (
            "import os, time\n"
            "for _ in range(4):\n"
            "    if not os.fork(): break\n"
            "kept = os.urandom(1000) * 120_000\n"
            "time.sleep(60)"
        )
        sandbox.run("echo kept > file")
        done = sandbox.run(f"{PYTHON} -", stdin=program.encode())
        assert done.limits_reached == ("total_memory",)
        assert sandbox.run("cat file; pgrep python | wc -l").output.split() == ["kept", "0"]

    @pytest.mark.parametrize(
        "taken",
        [
            "import mmap; m = mmap.mmap(-1, 300 << 20); m.write(bytes(300 << 20))",
            "fds = [os.memfd_create('x') for _ in range(30)]\n"
            "for fd in fds: os.write(fd, bytes(10 << 20))",
        ],
        ids=["shared", "nameless files"],
    )
    def test_memory_that_is_no_processs_own_counts_too(self, sandbox, taken):
        program = f"import os, time\n{taken}\nos.fork()\ntime.sleep(60)"
        done = sandbox.run(f"{PYTHON} -", stdin=program.encode())
        assert done.limits_reached == ("total_memory",)

    def test_memory_that_processes_share_counts_once(self, sandbox):
        program = (
            "import mmap, os, time\n"
            "m = mmap.mmap(-1, 50 << 20); m.write(bytes(50 << 20))\n"
            "parent = os.getpid()\n"
            "for _ in range(6):\n"
            "    if os.getpid() == parent: os.fork()\n"
            "sum(m[::4096]); time.sleep(1); print('on')"
        )
        assert "on" in python(sandbox, program)

    @pytest.mark.parametrize("where", ["/repo/f", "/tmp/f", "/dev/shm/f"])
    def test_filling_the_disk_is_told_and_can_be_undone(self, sandbox, where):
        start = sandbox.snapshot()
        done = sandbox.run(f"for i in 1 2 3 4 5; do head -c 15M /dev/zero > {where}$i; done")
        assert "No space left" in done.output
        assert done.limits_reached == ("disk",)
        full = sandbox.snapshot()
        assert sandbox.run("echo on; cd /").output == "on\n"
        sandbox.restore(start)
        del full
        assert sandbox.run(f"ls {where}*; head -c 10M /dev/zero > /tmp/x && echo ok").output[
            -3:
        ] == ("ok\n")

    def test_a_file_over_its_limit_ends_who_writes_it(self, sandbox):
        done = sandbox.run("head -c 17M /dev/zero > f")
        assert done.limits_reached == ("file_size",)

    def test_a_hole_is_no_way_around_the_limits(self, sandbox):
        assert sandbox.run("truncate -s 1T f").returncode != 0

    def test_endless_output_without_a_newline_is_cut(self, sandbox):
        done = sandbox.run("tr '\\0' x < /dev/zero", timeout=1)
        assert done.limits_reached == ("output", "seconds")
        assert set(done.output) == {"x"}

    def test_who_goes_on_printing_does_not_keep_a_command_from_ending(self, sandbox):
        done = sandbox.run("yes & echo begun")
        assert not done.timed_out
        assert sandbox.run("echo on").output == "on\n"

    def test_the_state_of_the_shell_cannot_grow_without_end(self, sandbox):
        sandbox.run("x=1")
        sandbox.run("head -c 100M /dev/zero >&199; y=2")
        assert sandbox.run("echo $x$y").output == "1\n"

    def test_a_huge_variable_is_not_carried_and_the_shell_goes_on(self, sandbox):
        sandbox.run("x=1")
        sandbox.run("big=$(head -c 6M /dev/zero | tr '\\0' x)")
        assert sandbox.run("echo $x ${#big}").output == "1 0\n"


class TestTheSandboxItself:
    def test_a_daemon_outlives_its_command_and_not_its_sandbox(self, sandbox):
        start = sandbox.snapshot()
        sandbox.run(f"setsid nohup sleep 1234 > /dev/null 2>&1 & {ONCE_IT_SLEEPS}")
        with pytest.raises(UncapturedStateError, match="sleep 1234"):
            sandbox.snapshot()
        sandbox.restore(start)
        assert sandbox.run("pgrep -f 'sleep 123[4]'").output == ""

    def test_a_daemon_without_a_command_line_is_named_too(self, sandbox):
        sandbox.run(
            f"{PYTHON} -c 'import ctypes, time;"
            ' ctypes.CDLL(None).prctl(15, b"hidden"); time.sleep(99)\' > /dev/null 2>&1 &'
        )
        with pytest.raises(UncapturedStateError):
            sandbox.snapshot()

    def test_nothing_writes_to_a_moment_that_is_held(self, sandbox, backend):
        sandbox.run(
            "for i in 1 2 3 4; do (while :; do echo x >> log$i; done) & done > /dev/null 2>&1"
        )
        held = sandbox.snapshot(allow_process_loss=True)
        forks = [backend.fork(held) for _ in range(2)]
        sums = {fork.run("cat log* | md5sum").output for fork in forks}
        sandbox.restore(held)
        sums.add(sandbox.run("cat log* | md5sum").output)
        assert len(sums) == 1
        for fork in forks:
            fork.close()

    @pytest.mark.parametrize(
        "command",
        ["kill -9 -1", "kill -9 2", "echo > /proc/2/fd/0", "head -c 1M /dev/zero > /proc/2/fd/1"],
    )
    def test_harming_what_holds_it_harms_nothing_that_was_written(self, sandbox, command):
        sandbox.run("echo kept > file")
        sandbox.run(command, timeout=2)
        assert sandbox.run("cat file").output == "kept\n"

    def test_deleting_everything_is_survived(self, sandbox):
        start = sandbox.snapshot()
        sandbox.run("rm -rf /repo /home /etc /var /tmp /bin /lib /root 2>/dev/null; true")
        sandbox.restore(start)
        assert sandbox.run("cat /repo/README").output == "read me\n"

    def test_a_working_directory_that_is_gone_is_told(self, sandbox):
        sandbox.run("rm -rf /repo")
        assert "working directory is gone" in sandbox.run("true").output

    def test_folders_nested_beyond_any_path_are_kept_and_removed(self, sandbox, backend):
        deep = (
            "import os\n"
            "for _ in range(3000): os.mkdir('d'); os.chdir('d')\n"
            "open('bottom', 'w').write('deep')"
        )
        start = sandbox.snapshot()
        assert python(sandbox, deep) == ""
        with pytest.raises(SandboxError, match="nested too deep"):
            sandbox.snapshot()
        assert sandbox.run("echo on").output == "on\n"
        sandbox.restore(start)
        assert sandbox.run("ls").output == "README\n"


class TestTricksWithLinks:
    @pytest.fixture
    def outside(self, tmp_path):
        tmp_path.chmod(0o777)
        (tmp_path / "secret").write_text("secret")
        (tmp_path / "secret").chmod(0o666)
        return tmp_path

    def listing(self, folder):
        return sorted((p.name, p.stat().st_mtime_ns, p.stat().st_uid) for p in folder.iterdir())

    def test_a_link_above_a_mount_point_is_refused(self, backend, base, outside, tmp_path_factory):
        shown = tmp_path_factory.mktemp("shown")
        before = self.listing(outside)
        start = backend.create(base).snapshot()
        sandbox = backend.fork(start, binds=[(str(shown), "/opt/tools/deep")])
        sandbox.run(f"mv /opt /elsewhere; ln -s {outside} /opt")
        for _ in range(2):
            with pytest.raises(SandboxError, match="was replaced inside the sandbox"):
                sandbox.snapshot()
        assert self.listing(outside) == before
        sandbox.restore(start)
        assert sandbox.run("ls /opt").output == "tools\n"
        sandbox.close()

    @pytest.mark.parametrize("place", ["/dev", "/dev/shm", "/proc", "/usr"])
    def test_a_link_in_the_place_of_a_mount_point_is_refused(self, backend, base, outside, place):
        sandbox = backend.create(base)
        done = sandbox.run(f"mv {place} /gone || rm -rf {place}; ln -sT {outside} {place}")
        assert done.returncode != 0
        assert self.listing(outside)[0][0] == "secret"
        sandbox.close()

    @pytest.mark.parametrize("up", ["", "../" * 12])
    def test_a_folder_that_became_a_link_takes_nothing_along(
        self, sandbox, backend, other_backend, base, outside, up
    ):
        before = self.listing(outside)
        target = f"{up}{str(outside)[1:]}" if up else str(outside)
        sandbox.run("mkdir -p d/e; echo own > d/secret; echo own > d/new; echo own > d/e/x")
        sandbox.snapshot()
        sandbox.run(f"rm -r d; ln -s {target} d")
        exported = backend.export(sandbox.snapshot())
        assert self.listing(outside) == before
        twin = other_backend.fork(other_backend.import_(base, exported))
        assert twin.run("readlink d; find / -xdev -name secret").output == f"{target}\n"
        twin.close()

    def test_reading_and_writing_for_a_grader_stays_inside(self, sandbox, outside):
        before = self.listing(outside)
        sandbox.run(f"ln -s {outside}/secret s; ln -s {outside} d; mkfifo f; mkdir folder")
        sandbox.run(f"mkdir -p {outside}; echo inside > {outside}/secret")
        assert sandbox.read_file("/repo/s") == b"inside\n"
        sandbox.write_file("/repo/d/new", b"new", 0o600)
        sandbox.write_file("/repo/s", b"s")
        assert self.listing(outside) == before
        assert sandbox.run(f"cat {outside}/new {outside}/secret s; stat -c %a d/new").output == (
            "newinside\ns600\n"
        )
        for path in ("/repo/f", "/repo/folder", "/repo/none", "/proc/self/environ"):
            with pytest.raises(SandboxError):
                sandbox.read_file(path)
        with pytest.raises(SandboxError, match="more than the 3"):
            sandbox.read_file("/repo/README", limit=3)
        with pytest.raises(SandboxError, match="folder"):
            sandbox.write_file("/repo/folder", b"")


@pytest.fixture(scope="module")
def other_backend():
    with make_overlay_backend(SMALL) as backend:
        yield backend
