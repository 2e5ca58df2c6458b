"""What a fork would lose or share is refused by name, and the environment goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sandboxgym.core.errors import UncapturedStateError
from tests.mechanisms.process_lab import answer, lab

ROOT = Path(__file__).parents[2]


@pytest.fixture
def env():
    env = lab()
    yield env
    env.close()


@pytest.mark.parametrize(
    ("action", "words"),
    [
        ("thread", "Python thread 'janitor'"),
        ("child", "'sleep'"),
        ("socket", "socket:"),
        ("pipe", "pipe:"),
        ("share", "writable shared memory"),
        ("timer", "ITIMER_REAL"),
        ("fifo door", "door is neither a file"),
    ],
)
def test_is_refused_with_a_way_out(env, action, words):
    answer(env, "nothing")
    before = env.snapshot()
    env.step(action)
    with pytest.raises(UncapturedStateError, match=words) as caught:
        env.snapshot()
    assert "mechanism='replay'" in str(caught.value)
    assert answer(env, "nothing") == ""  # it goes on
    env.restore(before)
    env.snapshot()


def test_is_refused_as_it_is_built():
    with pytest.raises(UncapturedStateError, match="janitor"):
        lab(built="thread")


def test_is_forked_again_once_it_has_let_go(env, tmp_path):
    env.step("socket")
    env.step(f"write {tmp_path / 'x'} y")
    with pytest.raises(UncapturedStateError, match="changed"):
        env.snapshot()
    env.reset(seed=1)
    env.step("let_go")
    with pytest.raises(UncapturedStateError, match="changed"):  # the file stays changed
        env.snapshot()


def test_letting_go_of_a_socket_is_enough(env):
    env.step("socket")
    with pytest.raises(UncapturedStateError):
        env.snapshot()
    env.step("let_go")
    env.snapshot()


@pytest.mark.parametrize("action", ["write {} text", "makedirs {}", "open w {}"])
def test_a_change_elsewhere_is_refused_by_its_path(env, tmp_path, action):
    path = tmp_path / "elsewhere"
    env.step(action.format(path))
    with pytest.raises(UncapturedStateError, match=str(path)):
        env.snapshot()


def test_removing_elsewhere_is_refused(env, tmp_path):
    path = tmp_path / "elsewhere"
    path.touch()
    env.snapshot()
    env.step(f"remove {path}")
    with pytest.raises(UncapturedStateError, match=str(path)):
        env.snapshot()


def test_calls_that_change_nothing_are_no_changes(env, tmp_path):
    env.step(f"makedirs {tmp_path}")
    with pytest.raises(FileNotFoundError):
        env.step(f"remove {tmp_path / 'nothing'}")
    env.reset(seed=1)
    env.step("open w /dev/null")
    env.step("let_go")
    env.snapshot()


def test_what_was_written_while_building_is_the_same_for_all(tmp_path):
    env = lab(built=f"write {tmp_path / 'cache'} text")
    env.snapshot()
    env.close()


def test_a_harmless_device_is_no_obstacle(env):
    env.step("open r /dev/urandom")
    env.snapshot()
    env.step("open r /dev/ptmx")
    with pytest.raises(UncapturedStateError, match=r"/dev/(ptmx|pts)"):
        env.snapshot()


NO_NAMESPACES = """
from sandboxgym.core.errors import UncapturedStateError
from tests.mechanisms.process_lab import answer, lab
env = lab()
print(sorted(env.fidelity.scope))
env.restore(env.snapshot())
env.step("write mine text")
try:
    env.snapshot()
except UncapturedStateError as error:
    print(error)
env.step("remove mine")
env.restore(env.snapshot())
print(answer(env, "draw") is not None, answer(env, "folder"))
env.close()
"""


def printed(command: list[str]) -> list[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    result = subprocess.run(
        command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


@pytest.mark.skipif(
    subprocess.run(["unshare", "--user", "--map-root-user", "true"]).returncode != 0,
    reason="this machine has no user namespaces to forbid mount namespaces in",
)
def test_without_namespaces_temporary_files_are_refused():
    forbid = 'echo 0 > /proc/sys/user/max_mnt_namespaces; exec "$0" -c "$1"'
    command = ["unshare", "--user", "--map-root-user", "sh", "-c", forbid]
    scope, refusal, last = printed([*command, sys.executable, NO_NAMESPACES])
    assert scope == "['memory']"
    assert "mine" in refusal
    assert "user namespaces" in refusal
    drawn, folder = last.split()
    assert drawn == "True"
    assert not Path(folder).exists()


WITH_FILES = """
from tests.mechanisms.process_lab import answer, lab
env = lab()
print(sorted(env.fidelity.scope))
env.step("write mine text")
snapshot = env.snapshot()
env.step("write mine other")
env.restore(snapshot)
print(answer(env, "read mine"))
env.close()
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root has rights to give up")
def test_without_roots_rights_temporary_files_are_private_by_user_namespaces():
    command = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", sys.executable]
    assert printed([*command, "-c", WITH_FILES]) == ["['filesystem', 'memory']", "text"]


SEES_NO_MOUNT = """
from pathlib import Path
from tests.mechanisms.process_lab import answer, lab
env = lab()
twin = env.spawn()
twin.reset(seed=1)
print(answer(env, "folder") in Path("/proc/self/mounts").read_text())
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can share mounts")
def test_mounts_are_not_seen_outside_where_mounts_are_shared():
    command = ["unshare", "--mount", "--propagation", "shared", sys.executable]
    assert printed([*command, "-c", SEES_NO_MOUNT]) == ["False"]
