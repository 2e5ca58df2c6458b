"""What the docker backend does beyond the contract: images, clean-up, and travel to overlays."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import warnings

import pytest

from sandboxgym.core.errors import DataNotFoundError, SnapshotCorruptError, SpecMismatchError
from sandboxgym.sandboxes.repo.backend import Limits, SandboxError
from sandboxgym.sandboxes.repo.docker import backend as docker_backend
from sandboxgym.sandboxes.repo.docker import owners
from sandboxgym.sandboxes.repo.docker.backend import DiskNotKeptWarning, DockerBackend
from sandboxgym.sandboxes.repo.docker.images import base_of_image
from tests.sandboxes.repo.conftest import make_overlay_backend
from tests.sandboxes.repo.docker_daemon import IMAGE

LIMITS = Limits(seconds=20.0, total_memory=2**28, file_size=2**24)
CHANGES = (
    "x=5; f() { echo f$x; }; umask 027; echo 1 > new; ln new docs/hard; ln -s new link; mkfifo p;"
    "mkdir -p deep/er; echo 2 > 'deep/er/a b'; chmod 600 README; mv docs papers; mkdir docs;"
    "cd deep"
)
LOOK = (
    "pwd; f; umask; cd /repo; find . | sort; cat README new 'deep/er/a b' papers/hard;"
    "stat -c '%A %h' README new; stat -c %A papers; [ new -ef papers/hard ] && echo linked;"
    "readlink link"
)


@pytest.fixture
def backend(docker_address):
    with DockerBackend(LIMITS, docker_address) as backend:
        yield backend


@pytest.fixture
def base(backend):
    return backend.base(IMAGE)


@pytest.fixture
def overlay(docker_address):
    with make_overlay_backend(LIMITS) as backend:
        yield backend


@pytest.fixture
def unpacked(backend, tmp_path):
    return base_of_image(backend.client, IMAGE, cache=tmp_path)


def made_by(backend: DockerBackend) -> tuple[int, int]:
    label = {"label": f"{owners.BACKEND}={backend.name}"}
    containers = backend.client.containers.list(all=True, filters=label)
    return len(containers), len(backend.client.images.list(all=True, filters=label))


def test_close_removes_containers_and_images(docker_address):
    backend = DockerBackend(LIMITS, docker_address)
    sandbox = backend.create(backend.base(IMAGE))
    moment = sandbox.snapshot()
    backend.fork(moment).run("echo more > file")
    assert made_by(backend) == (2, 2)
    backend.close()
    with DockerBackend(LIMITS, docker_address) as other:
        other.name = backend.name
        assert made_by(other) == (0, 0)
    with pytest.raises(SandboxError, match="closed"):
        sandbox.run("true")


def test_a_disk_is_limited_or_it_is_told_that_it_is_not(docker_address):
    limits = Limits(seconds=60.0, disk=2**26)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with DockerBackend(limits, docker_address) as backend:
            sandbox = backend.create(backend.base(IMAGE))
            sandbox.run("head -c 100M /dev/zero > big")
            size = int(sandbox.run("stat -c %s big").output)
            kept = backend.containers.keeps_disk
    assert kept == (size < 100 * 2**20)
    named = [str(one.message) for one in told if one.category is DiskNotKeptWarning]
    assert len(named) == (0 if kept else 1)
    assert all("disk=67108864 is not kept" in message for message in named)


def test_images_are_removed_when_no_checkpoint_refers_to_them(backend, base):
    with backend.create(base) as sandbox:
        moments = []
        for number in range(3):
            sandbox.run(f"echo {number} > file")
            moments.append(sandbox.snapshot())
            sandbox.restore(moments[-1])
        assert made_by(backend) == (1, 4)
        sandbox.restore(moments[0])
        del moments
        gc.collect()
        backend.sweep()
        assert made_by(backend) == (1, 2)
        assert sandbox.run("cat file").output == "0\n"


def test_what_a_killed_process_left_is_removed_by_the_next_start(docker_address):
    owner = (
        "import sys, time\n"
        "from sandboxgym.sandboxes.repo.docker.backend import DockerBackend\n"
        f"backend = DockerBackend(base_url={docker_address!r})\n"
        f"sandbox = backend.create(backend.base({IMAGE!r}))\n"
        "moment = sandbox.snapshot()\n"
        "print(backend.name, flush=True)\n"
        "time.sleep(600)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", owner], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        name = process.stdout.readline().strip()
        with DockerBackend(LIMITS, docker_address) as while_it_lives:
            while_it_lives.name = name
            assert made_by(while_it_lives) == (1, 2)
            while_it_lives.name = "none"
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    with DockerBackend(LIMITS, docker_address) as next_start:
        next_start.name = name
        assert made_by(next_start) == (0, 0)


def test_only_processes_that_surely_ended_are_gone():
    owner = owners.this_process()
    place, process, start = owner.split(" ")
    assert not owners.is_gone(owner)
    assert owners.is_gone(f"{place} {process} {int(start) - 1}")
    node, boot, namespace = place.rsplit(":", 2)
    assert owners.is_gone(f"{node}:another:{namespace} {process} {start}")
    assert not owners.is_gone(f"elsewhere:{boot}:{namespace} {process} 1")
    assert not owners.is_gone(f"{node}:{boot}:1 {process} 1")
    assert not owners.is_gone("")


@pytest.mark.slow
def test_long_chains_are_made_one_layer(backend, base, monkeypatch):
    monkeypatch.setattr(docker_backend, "MAX_LAYERS", 5)
    with backend.create(base) as sandbox:
        for number in range(9):
            sandbox.run(f"echo {number} >> log; rm -f last; echo {number} > last; x={number}")
            moment = sandbox.snapshot()
            layers = backend.client.images.get(moment.image.name).attrs["RootFS"]["Layers"]
            assert len(layers) < 5
            sandbox.restore(moment)
        assert sandbox.run("tail -n 1 log; wc -l < log; cat last; echo $x; pwd").output == (
            "8\n9\n8\n8\n/repo\n"
        )
    del moment, sandbox
    backend.sweep()
    assert made_by(backend) == (0, 1)


@pytest.mark.parametrize(
    "command", ["pwd; env | sort; ls -A", "id -u; git --version; python3 -c 'print(1)'", "cat nope"]
)
def test_a_command_gives_the_same_in_a_container_and_in_an_overlay(
    backend, base, overlay, unpacked, command
):
    with backend.create(base) as container, overlay.create(unpacked) as layers:
        result = container.run(command)
        assert result == layers.run(command)
        assert result.output


def test_an_unpacked_image_is_used_again(backend, unpacked, tmp_path):
    before = unpacked.root.stat().st_ino
    assert base_of_image(backend.client, IMAGE, cache=tmp_path) == unpacked
    assert unpacked.root.stat().st_ino == before
    assert len(list(tmp_path.iterdir())) == 1
    assert {path.name for path in unpacked.root.glob("dev/*")} == {"shm"}


def test_a_moment_travels_from_a_container_to_an_overlay(backend, base, overlay, unpacked):
    with backend.create(base) as sandbox:
        sandbox.run(CHANGES)
        moment = overlay.import_(unpacked, sandbox.snapshot().pack())
        with overlay.fork(moment) as twin:
            assert twin.run(LOOK) == sandbox.run(LOOK)


def test_a_moment_travels_from_an_overlay_to_a_container(backend, base, overlay, unpacked):
    with overlay.create(unpacked) as sandbox:
        sandbox.run(CHANGES)
        moment = backend.import_(base, sandbox.snapshot().pack())
        with backend.fork(moment) as twin:
            result = twin.run(LOOK)
            assert result == sandbox.run(LOOK)
            assert "linked" in result.output
            assert twin.run("touch /repo/README deep/er/x; stat -c %u / /usr").output == "0\n0\n"


def test_what_is_no_moment_of_this_image_is_refused(backend, base, overlay, unpacked):
    with pytest.raises(SnapshotCorruptError):
        backend.import_(base, b"nothing")
    with overlay.create(unpacked) as sandbox:
        exported = sandbox.snapshot().pack()
    with pytest.raises((SnapshotCorruptError, SpecMismatchError)):
        backend.import_(base, exported.replace(b"image sha256:", b"image sha257:"))


def test_an_image_that_is_not_there_is_named(backend):
    with pytest.raises(DataNotFoundError, match="no-such-image"):
        backend.base("no-such-image")


def test_only_images_are_bases(backend, unpacked):
    with pytest.raises(SandboxError, match="starts from images"):
        backend.create(unpacked)


def test_files_are_read_and_written_past_the_agent(backend, base):
    with backend.create(base) as sandbox:
        sandbox.write_file("/repo/docs/new", b"by us", 0o640)
        sandbox.run("ln -s docs/new link; mkfifo pipe; ln -s /etc/../repo/docs folder")
        assert sandbox.run("stat -c '%a %u' docs/new").output == "640 1000\n"
        assert sandbox.read_file("/repo/link") == b"by us"
        assert sandbox.read_file("/repo/folder/new") == b"by us"
        for path, reason in (("/repo/pipe", "no ordinary"), ("/repo/docs", "no ordinary")):
            with pytest.raises(SandboxError, match=reason):
                sandbox.read_file(path)
        with pytest.raises(SandboxError, match="more than the 2"):
            sandbox.read_file("/repo/link", 2)
        with pytest.raises(SandboxError, match="/repo/absent"):
            sandbox.read_file("/repo/absent")
        sandbox.write_file("/repo/link", b"in place of the link")
        assert sandbox.run("cat docs/new; cat link").output == "by usin place of the link"


def test_limits_are_held_and_told(backend, base):
    with backend.create(base) as sandbox:
        memory = sandbox.run("x=$(head -c 400000000 /dev/zero | tr '\\0' x)")
        assert "total_memory" in memory.limits_reached
        size = sandbox.run("exec head -c 20000000 /dev/zero > big")
        assert size.limits_reached == ("file_size",)
        assert sandbox.run("stat -c %s big; echo $x").output == f"{LIMITS.file_size}\n\n"
        bomb = sandbox.run("b() { b | b & }; b; sleep 600", timeout=2)
        assert bomb.timed_out
        assert sandbox.run("echo lives").output == "lives\n"
        many = sandbox.run("for i in {1..200}; do sleep 600 & done; kill -9 $$")
        assert many.limits_reached == ("processes",)
        assert sandbox.snapshot() is not None


def test_a_container_has_nothing_of_the_machine(backend, base):
    with backend.create(base) as sandbox:
        settings = sandbox._container.attrs["HostConfig"]
        assert settings["NetworkMode"] == "none"
        assert settings["CapDrop"] == ["ALL"]
        assert "no-new-privileges" in settings["SecurityOpt"]
        assert not settings["Privileged"]
        assert not settings["Binds"]
        assert sandbox.run("ls /var/run/docker.sock /run/docker.sock").returncode != 0
        assert sandbox.run("kill -9 1; touch /usr/mine").returncode != 0
        assert sandbox.run("cat README").output == "read me\n"
