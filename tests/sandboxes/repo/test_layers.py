"""Long chains of layers, and that one layer made of them says the same."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from sandboxgym.sandboxes.repo.backend import Limits
from sandboxgym.sandboxes.repo.overlay import layers, links, trees, warden
from sandboxgym.sandboxes.repo.overlay.places import PlaceError, place
from tests.sandboxes.repo.conftest import make_overlay_backend

LIMITS = Limits(seconds=30.0)


@pytest.fixture(scope="module")
def backend():
    with make_overlay_backend(LIMITS) as backend:
        yield backend


SHOW = (
    "cd /repo; find . -path ./.git -prune -o -printf '%p %y %m %T@ %l\\n' | sort; "
    "find . -path ./.git -prune -o ! -type d -printf '%p %s %n\\n' | sort; "
    "find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 md5sum"
)


def seen(sandbox) -> str:
    return sandbox.run(SHOW, output=10**6).output


@pytest.mark.parametrize(
    "steps",
    [
        ["echo 1 > a", "echo 2 > a", "rm a", "echo 3 > a"],
        ["rm README", "mkdir README", "touch README/x", "rm -r README", "echo back > README"],
        ["rm -r docs", "mkdir docs", "echo x > docs/x"],
        ["rm -r docs", "echo file > docs", "rm docs", "mkdir docs"],
        ["echo x > docs/x", "mv docs papers", "echo y > papers/y", "mv papers docs2", "mkdir docs"],
        ["mkdir -p d/e/f; echo 1 > d/e/f/g", "mv d/e h", "rm -r d", "ln -s h d", "rm d; mkdir d"],
        ["echo 1 > a; ln a b", "echo 2 >> b", "mkdir d; ln b d/c", "rm a", "echo 3 >> d/c"],
        ["mkdir d; echo 1 > d/a; ln d/a b", "mv d e", "echo 2 >> b", "mv e/a c", "rm -r e"],
        ["mkfifo f; truncate -s 10M hole", "chmod 600 f; echo x >> hole", "mv f g"],
        ["mkdir d; touch d/x; chmod 511 d", "chmod 755 d", "touch -d 2001-01-01 d README"],
    ],
)
def test_a_merged_chain_says_what_the_layers_did(backend, base, steps):
    sandbox = backend.create(base)
    for step in steps:
        done = sandbox.run(f"cd /repo; {step}")
        assert done.returncode == 0, done.output
        moment = sandbox.snapshot()
    before = seen(sandbox)
    assert len(moment.layers) == len(steps)
    merged = backend.import_(base, moment.pack())
    assert len(merged.layers) == 1
    with backend.fork(merged) as again:
        assert seen(again) == before
        assert again.run("echo on >> README.new; cat README.new").output == "on\n"
    sandbox.close()


def test_a_chain_stays_short_and_every_moment_of_it_can_be_restored(backend, base):
    sandbox = backend.create(base)
    sandbox.run("rm README; mv docs papers; mkdir docs; echo 1 > a; ln a b; mkfifo f; ln -s a l")
    sandbox.run("touch -d 2001-01-01 .")
    made = seen(sandbox)
    assert "./papers d" in made
    moments = []
    for number in range(2 * warden.MAX_CHAIN + 10):
        sandbox.run(f"echo {number} > file{number % 7}; echo {number} > last")
        moments.append(sandbox.snapshot())
        assert len(moments[-1].layers) <= warden.MAX_CHAIN + 1
    sandbox.run("rm last file*; touch -d 2001-01-01 .")
    assert seen(sandbox) == made
    for number in (0, warden.MAX_CHAIN - 1, warden.MAX_CHAIN, warden.MAX_CHAIN + 1, -1):
        sandbox.restore(moments[number])
        wanted = number % len(moments)
        assert sandbox.run("cat last; ls file* | wc -l").output.split() == [
            str(wanted),
            str(min(7, wanted + 1)),
        ]
    sandbox.close()


def test_layers_without_a_moment_are_dropped(backend, base):
    sandbox = backend.create(base)

    def used() -> int:
        return int(sandbox.run("df --output=used / | tail -n 1").output)

    start = sandbox.snapshot()
    before = used()
    sandbox.run("head -c 20M /dev/zero > big")
    moment = sandbox.snapshot()
    assert used() > before + 20_000
    sandbox.restore(start)
    assert used() > before + 20_000
    del moment
    sandbox.restore(start)  # the keeper drops layers in the order of requests
    for _ in range(100):
        if used() <= before + 100:
            break
    assert used() <= before + 100
    sandbox.close()


def test_walking_a_tree_goes_down_any_depth_in_order(tmp_path):
    deep = tmp_path
    for _ in range(1500):
        deep = deep / "d"
        deep.mkdir()
    (tmp_path / "a").touch()
    (tmp_path / "link").symlink_to("/")
    names = [name for name, _ in trees.walk(tmp_path)]
    assert names[:3] == ["a", "d", "link"]
    assert len(names) == 1502
    trees.remove(tmp_path / "d")
    assert [name for name, _ in trees.walk(tmp_path)] == ["a", "link"]


def test_removing_a_tree_follows_no_link(tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    (tmp_path / "gone").mkdir()
    (tmp_path / "gone" / "link").symlink_to(tmp_path / "kept")
    trees.remove(tmp_path / "gone")
    assert sorted(name for name, _ in trees.walk(tmp_path)) == ["kept", "kept/file"]


def test_a_node_is_found_without_following_links(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").touch()
    (tmp_path / "link").symlink_to("folder")
    assert layers.node(tmp_path, "folder/file") is not None
    assert layers.node(tmp_path, "link") is not None
    assert layers.node(tmp_path, "link/file") is None
    assert layers.node(tmp_path, "folder/file/below") is None
    assert layers.node(tmp_path, "none") is None


def test_holes_stay_holes(tmp_path):
    with (tmp_path / "a").open("wb") as file:
        file.truncate(2**40)
        file.seek(2**39)
        file.write(b"in the middle")
    layers.copy_file(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b").stat().st_size == 2**40
    assert (tmp_path / "b").stat().st_blocks == (tmp_path / "a").stat().st_blocks
    with (tmp_path / "b").open("rb") as file:
        file.seek(2**39)
        assert file.read(13) == b"in the middle"


def test_linked_files_are_found_and_carried(tmp_path):
    lower, upper = tmp_path / "lower", tmp_path / "upper"
    (lower / "d").mkdir(parents=True)
    upper.mkdir()
    (lower / "a").write_text("linked")
    (lower / "d" / "b").hardlink_to(lower / "a")
    (lower / "alone").write_text("alone")
    groups = links.linked_groups(lower)
    assert groups == [["a", "d/b"]]
    links.carry_links(lower, upper, groups)
    assert (upper / "a").samefile(upper / "d" / "b")
    assert not (upper / "a").samefile(lower / "a")
    assert (upper / "d").stat().st_mtime_ns == (lower / "d").stat().st_mtime_ns
    assert not (upper / "alone").exists()


def test_what_is_no_file_is_carried_under_all_its_names_too(tmp_path):
    lower, upper = tmp_path / "lower", tmp_path / "upper"
    lower.mkdir()
    upper.mkdir()
    (lower / "link").symlink_to("nowhere")
    os.mkfifo(lower / "pipe", 0o640)
    os.mknod(lower / "socket", stat.S_IFSOCK | 0o755)
    for name in ("link", "pipe", "socket"):
        os.link(lower / name, lower / f"{name} again", follow_symlinks=False)
    groups = links.linked_groups(lower)
    assert sorted(groups) == [[name, f"{name} again"] for name in ("link", "pipe", "socket")]
    links.carry_links(lower, upper, groups)
    for name in ("link", "pipe", "socket"):
        there, here = (lower / name).lstat(), (upper / name).lstat()
        assert (here.st_mode, here.st_nlink) == (there.st_mode, 2)
        assert here.st_ino == (upper / f"{name} again").lstat().st_ino


def test_marks_of_what_is_deleted_are_no_links(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can make the marks of a privileged overlay")
    layers.make_whiteout(tmp_path / "gone")
    os.link(tmp_path / "gone", tmp_path / "gone too")  # as the kernel does, to save nodes
    assert links.linked_groups(tmp_path) == []


class TestPlaces:
    def test_a_place_is_found_or_made(self, tmp_path):
        for _ in range(2):
            with place(str(tmp_path), "/a/b/c", folder=True) as here:
                assert Path(f"/proc/self/fd/{here}").resolve() == tmp_path / "a/b/c"
            with place(str(tmp_path), "/a/file", folder=False):
                assert (tmp_path / "a/file").is_file()

    @pytest.mark.parametrize("at", ["a", "a/b", "a/b/c"])
    @pytest.mark.parametrize("kind", ["link", "file"])
    def test_what_was_replaced_is_refused(self, tmp_path, at, kind):
        (tmp_path / "elsewhere").mkdir()
        node = tmp_path / "root" / at
        node.parent.mkdir(parents=True)
        if kind == "link":
            node.symlink_to(tmp_path / "elsewhere")
        else:
            node.touch()
        with (
            pytest.raises(PlaceError, match=f"/{at} was replaced"),
            place(str(tmp_path / "root"), "/a/b/c", folder=True),
        ):
            pass
        assert list((tmp_path / "elsewhere").iterdir()) == []
