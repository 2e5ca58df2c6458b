from __future__ import annotations

import http.server
import json
import os
import shutil
import socketserver
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from sandboxgym.cli import main
from sandboxgym.cli.doctor import kernel, packages, programs
from sandboxgym.cli.doctor.finding import System, tried

DEBIAN_ROOT = System("Debian", root=True, apt=True, ubuntu=False, systemd=False)
UBUNTU_USER = System("Ubuntu", root=False, apt=True, ubuntu=True, systemd=True)
OTHER = System("Other", root=False, apt=False, ubuntu=False, systemd=True)

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="Linux's own facilities")


@pytest.fixture
def path(tmp_path, monkeypatch):
    """An empty PATH (but for the shell's own tools), and a way to put a program on it."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def put(name, script):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(program.stat().st_mode | stat.S_IEXEC)

    return put


# --- the command --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def doctor():
    """The command, run once for real."""
    done = subprocess.run(
        [sys.executable, "-m", "sandboxgym", "doctor", "--json"],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_it_tells_of_everything(doctor):
    names = [finding["name"] for finding in doctor["findings"]]
    assert len(names) == len(set(names))
    assert {
        *("fork-server", "userns", "overlay", "bubblewrap", "docker", "podman", "browser"),
        *("java", "gpu", "disk", "alfworld-data"),
    } <= set(names)


def test_what_is_not_usable_has_a_reason_and_what_is_needs_no_fix(doctor):
    for finding in doctor["findings"]:
        assert finding["what"]
        if finding["usable"]:
            assert finding["fix"] == ""
        elif finding["name"] not in ("gpu", "fork-server"):  # no command brings hardware or Linux
            assert finding["fix"]


@linux_only
def test_this_machine_is_told_as_it_is(doctor):
    usable = {finding["name"]: finding["usable"] for finding in doctor["findings"]}
    assert usable["fork-server"]
    for name, program in {"java": "java", "bubblewrap": "bwrap", "docker": "docker"}.items():
        if shutil.which(program) is None:
            assert not usable[name]


def test_it_prints_a_line_for_each_and_the_command_that_helps(capsys, path, monkeypatch):
    monkeypatch.setenv("ALFWORLD_DATA", "/nowhere")
    assert main(["doctor", "--need", "disk"]) == 0
    out = capsys.readouterr().out
    assert "--  java                    the program java is not on PATH" in out
    assert "$ pip install alfworld && alfworld-download" in out


def test_what_is_needed_decides_the_exit_status(capsys, path):
    assert main(["doctor", "--need", "disk", "--need", "java"]) == 1
    assert main(["doctor", "--need", "unicorns"]) == 2
    assert "there is no such thing; the names are fork-server" in capsys.readouterr().err


# --- trying a program ---------------------------------------------------------------------------


def test_a_program_that_hangs_is_ended_with_all_that_it_started():
    began = time.monotonic()
    trial = tried(["sh", "-c", "sleep 300 & echo $!; sleep 300"], 0.5)
    assert time.monotonic() - began < 30
    assert not trial.ok
    assert "did not end within 0.5 seconds" in trial.why


@linux_only
def test_a_program_that_leaves_a_child_behind_leaves_none(tmp_path):
    trial = tried(["sh", "-c", "sleep 300 >/dev/null 2>&1 & echo $!"], 20)
    assert trial.ok
    child = Path("/proc", trial.out.strip())
    for _ in range(100):
        if not child.exists() or "zombie" in (child / "status").read_text():
            return
        time.sleep(0.05)
    pytest.fail("the child lives on")


def test_a_program_gets_no_input_and_no_terminal():
    assert tried(["sh", "-c", "cat; test ! -t 0"], 20).ok
    program = "import os; os.open('/dev/tty', os.O_RDWR)"
    assert "No such device" in tried([sys.executable, "-c", program], 20).why


def test_a_program_that_is_none_is_an_answer_too(tmp_path):
    assert "does not start" in tried([str(tmp_path / "nothing")], 1).why
    assert "does not start" in tried([str(tmp_path)], 1).why
    assert tried(["sh", "-c", "exit 3"], 20).why == "sh ended with status 3"
    assert len(tried(["sh", "-c", "yes | head -c 1000000"], 20).out) < 10_000


# --- the fixes ----------------------------------------------------------------------------------


def test_commands_fit_the_system():
    assert DEBIAN_ROOT.install("x", "y") == "apt-get update && apt-get install -y x"
    assert UBUNTU_USER.install("x", "y") == "sudo apt-get update && sudo apt-get install -y x"
    assert OTHER.install("x", "y") == "y"


def test_no_docker(path):
    assert "docker.io" in programs.docker(DEBIAN_ROOT).fix
    assert programs.docker(OTHER).fix == "see https://docs.docker.com/engine/install/"


@pytest.mark.parametrize(
    ("script", "fix"),
    [
        ("echo 'permission denied while trying to connect' >&2; exit 1", "usermod -aG docker"),
        ("echo 'Cannot connect to the Docker daemon' >&2; exit 1", "systemctl start docker"),
    ],
)
def test_a_docker_that_does_not_answer(path, script, fix):
    path("docker", script)
    path("dockerd", "exit 0")
    found = programs.docker(UBUNTU_USER)
    assert not found.usable
    assert found.fix.startswith(f"sudo {fix}")


def test_a_docker_client_without_a_daemon(path):
    path("docker", "echo 'Cannot connect' >&2; exit 1")
    assert "apt-get install -y docker.io" in programs.docker(DEBIAN_ROOT).fix


def test_a_docker_that_answers(path):
    path("docker", "echo 27.1")
    assert programs.docker(UBUNTU_USER).what == "Docker daemon 27.1"


def test_old_and_broken_java(path):
    path("java", "echo 'Picked up options' >&2; echo 'java version \"1.8.0\"' >&2")
    assert programs.java(OTHER).what == 'java version "1.8.0"'
    path("java", "echo 'no JVM here' >&2; exit 1")
    assert programs.java(DEBIAN_ROOT).what == "no JVM here"
    assert "default-jre-headless" in programs.java(DEBIAN_ROOT).fix


def test_a_browser_has_to_draw(path, monkeypatch, tmp_path):
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "none"))
    assert programs.browser(UBUNTU_USER).fix == "sudo snap install chromium"
    assert "chromium-headless-shell" in programs.browser(DEBIAN_ROOT).fix
    assert "playwright install" in programs.browser(OTHER).fix
    path("chromium-browser", "echo 'this is a stub: install the snap' >&2; exit 1")
    found = programs.browser(UBUNTU_USER)
    assert "drew no page: this is a stub" in found.what


def test_a_browser_that_playwright_brought_is_found(path, monkeypatch, tmp_path):
    folder = tmp_path / "browsers/chromium-1/chrome-linux"
    folder.mkdir(parents=True)
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "browsers"))
    path("browsers/chromium-1/chrome-linux/headless_shell", "echo drew 42")
    assert programs.browser(OTHER).usable


def test_the_real_browser_draws_where_there_is_one():
    if not any(shutil.which(name) for name in programs.BROWSERS):
        pytest.skip("no browser on PATH")
    found = programs.browser(System.here())
    assert found.usable, found.what
    assert "draws a page" in found.what


def test_podman_is_asked_through_its_socket(path, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.delenv("CONTAINER_HOST", raising=False)
    assert programs.podman(OTHER).fix == "see https://podman.io/docs/installation"
    path("podman", "exit 0")
    assert programs.podman(OTHER).fix == "systemctl --user enable --now podman.socket"

    class Service(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"OK")

        def log_message(self, *_):
            pass

    (tmp_path / "podman").unlink()
    (tmp_path / "podman").mkdir()
    socket = tmp_path / "podman/podman.sock"
    with socketserver.UnixStreamServer(str(socket), Service) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        assert programs.podman(OTHER).what == f"socket {socket} answers OK"
    assert "does not answer" in programs.podman(OTHER).what


@linux_only
def test_a_gpu_is_asked_for_through_its_driver(path):
    path("nvidia-smi", "echo 'driver mismatch' >&2; exit 1")
    found = programs.gpu(UBUNTU_USER)
    assert "driver mismatch" in found.what
    assert found.fix == "sudo ubuntu-drivers install"


# --- the kernel ---------------------------------------------------------------------------------


@linux_only
def test_overlay_leaves_nothing_mounted():
    before = Path("/proc/self/mounts").read_text()
    kernel.overlay(System.here())
    assert Path("/proc/self/mounts").read_text() == before


@linux_only
def test_namespaces_that_are_closed_are_opened_by_the_setting_that_closes_them(
    path, tmp_path, monkeypatch
):
    path("unshare", "echo 'unshare failed: Operation not permitted' >&2; exit 1")
    closed = tmp_path / "closed"
    closed.write_text("0\n")
    monkeypatch.setattr(kernel, "CLOSED_DOORS", ((str(closed), "0", "the.setting=1"),))
    for probe in (kernel.user_namespaces, kernel.overlay):
        found = probe(UBUNTU_USER)
        assert not found.usable
        assert "Operation not permitted" in found.what
        assert found.fix in ("sudo sysctl -w the.setting=1", "sudo modprobe overlay")
    monkeypatch.setattr(kernel, "CLOSED_DOORS", ())
    assert "seccomp=unconfined" in kernel.user_namespaces(UBUNTU_USER).fix


def test_no_unshare_and_no_bubblewrap(path):
    assert "util-linux" in kernel.overlay(DEBIAN_ROOT).fix
    assert "util-linux" in kernel.user_namespaces(DEBIAN_ROOT).fix
    assert "bubblewrap" in kernel.bubblewrap(OTHER).fix


@linux_only
def test_bubblewrap_runs_a_process(path):
    path("bwrap", "test $1 = --version && echo bubblewrap 0.8 || test \"$*\" != ''")
    assert kernel.bubblewrap(OTHER).what == "bubblewrap 0.8 runs a process"


def test_too_little_space(monkeypatch):
    monkeypatch.setattr(kernel, "ENOUGH_SPACE", 2**80)
    found = kernel.disk(OTHER)
    assert not found.usable
    assert found.fix.startswith("export TMPDIR=")


# --- packages and data --------------------------------------------------------------------------


def test_the_packages_of_an_extra_are_looked_up():
    assert packages.extra("some", ["pytest"]).usable
    found = packages.extra("some", ["pytest", "no-such-package"])
    assert (found.usable, found.what) == (False, "not installed: no-such-package")
    assert found.fix == 'pip install "sandboxgym[some]"'


def test_extras_of_extras_are_followed(tmp_path, monkeypatch):
    for name, requirements in {
        "outer": ['inner[deep]>=1; extra == "all"', 'outer[more]; extra == "all"'],
        "inner": ['bottom>=2 ; extra == "deep"', "always"],
    }.items():
        if name == "outer":
            requirements.append('side==1.0; extra == "more"')
        folder = tmp_path / f"{name}-1.dist-info"
        folder.mkdir()
        lines = "".join(f"Requires-Dist: {requirement}\n" for requirement in requirements)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\n{lines}")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert packages.brought("outer", "all") == {"inner", "bottom", "side"}
    assert packages.brought("no-such-package", "all") == set()


def test_data_is_found_where_the_variable_says(tmp_path, monkeypatch):
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    assert f"no games in {tmp_path}" in packages.alfworld_data(OTHER).what
    game = tmp_path / "json_2.1.1/train/task/trial/game.tw-pddl"
    game.parent.mkdir(parents=True)
    game.touch()
    assert packages.alfworld_data(OTHER).usable
    assert os.environ["ALFWORLD_DATA"] in packages.alfworld_data(OTHER).what
