from __future__ import annotations

import subprocess
import sys

import pytest

import sandboxgym as sg
from sandboxgym.cli import main
from tests.store.moments import walk, with_noise


@pytest.fixture
def folder(tmp_path):
    store = sg.SnapshotStore(tmp_path / "store")
    for moment in [*walk(3), with_noise(1)]:
        store.put(moment)
    return tmp_path / "store"


def damage(folder):
    """Change a byte of the last state, which is noise and long."""
    (pack,) = (folder / "packs").iterdir()
    data = bytearray(pack.read_bytes())
    data[len(data) // 2] ^= 1
    pack.write_bytes(data)


def test_ls_shows_the_snapshots(folder, capsys):
    assert main(["store", "ls", str(folder)]) == 0
    out = capsys.readouterr().out
    for entry in sg.SnapshotStore(folder).ls():
        assert entry.key in out
    assert "tests.core.worlds:RandomWalk" in out
    assert "5 snapshots" in out


def test_verify_passes_a_whole_store_and_names_what_is_damaged(folder, capsys):
    assert main(["store", "verify", str(folder)]) == 0
    assert "all is well" in capsys.readouterr().out
    damage(folder)
    assert main(["store", "verify", str(folder)]) == 1
    out = capsys.readouterr().out
    key = sg.SnapshotStore(folder).ls()[-1].key
    assert "STATE" in out
    assert key in out
    assert "1 fault: " in out


def test_gc_frees_what_was_removed(folder, capsys):
    store = sg.SnapshotStore(folder)
    store.remove(store.ls()[-1].key)
    assert main(["store", "gc", str(folder)]) == 0
    freed = int(capsys.readouterr().out.split()[1].replace(",", ""))
    assert freed > 10_000
    assert len(sg.SnapshotStore(folder)) == 4


def test_gc_does_without_what_is_damaged_only_when_asked(folder, capsys):
    damage(folder)
    key = sg.SnapshotStore(folder).ls()[-1].key
    assert main(["store", "gc", str(folder)]) == 0
    assert main(["store", "verify", str(folder)]) == 1
    assert main(["store", "gc", "--drop-corrupt", str(folder)]) == 0
    assert "doing without STATE" in capsys.readouterr().out
    assert main(["store", "verify", str(folder)]) == 0
    assert sg.SnapshotStore(folder).get(key).state is None


@pytest.mark.parametrize("action", ["ls", "gc", "verify"])
def test_what_is_no_store_is_unusable_input_and_is_left_alone(tmp_path, capsys, action):
    for path in (tmp_path, tmp_path / "missing"):
        assert main(["store", action, str(path)]) == 2
        error = capsys.readouterr().err
        assert error.startswith("sandboxgym: error: ")
        assert "not a snapshot store" in error
        assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("action", ["ls", "gc", "verify"])
def test_a_damaged_manifest_is_a_fault(folder, capsys, action):
    (folder / "store.json").write_text("{")
    assert main(["store", action, str(folder)]) == 1
    assert "store.json is damaged" in capsys.readouterr().out


def test_snapshots_over_the_limit_are_no_damage(folder, capsys):
    for arguments in (["verify"], ["gc", "--drop-corrupt"]):
        assert main(["store", *arguments, "--max-bytes", "5000", str(folder)]) == 2
        assert "larger max_bytes" in capsys.readouterr().err
    assert main(["store", "verify", str(folder)]) == 0


def test_it_is_a_command(folder):
    done = subprocess.run(
        [sys.executable, "-m", "sandboxgym", "store", "ls", str(folder)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "5 snapshots" in done.stdout
