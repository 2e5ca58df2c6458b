from __future__ import annotations

import subprocess
import sys

import pytest

import sandboxgym as sg
from tests.store.moments import assert_same, with_noise

PROGRAM = """
import resource, sys
import sandboxgym as sg
from sandboxgym.core.errors import StoreError
from tests.store.moments import assert_same, with_noise

folder, limit = sys.argv[1], int(sys.argv[2])
store = sg.SnapshotStore(folder, disk_budget_bytes=None)
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
keys, failures = [], 0
for seed in range(40):
    try:
        keys.append(store.put(with_noise(seed)))
    except StoreError as error:
        failures += 1
        print(error)
assert failures > 10 and len(keys) > 5, (failures, len(keys))
assert store.verify() == [] and list(store) == keys
for seed, key in enumerate(keys):
    assert_same(store.get(key), with_noise(seed))
    assert_same(sg.SnapshotStore(folder).get(key), with_noise(seed))
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    keys.append(store.put(with_noise(99)))
assert store.verify() == [] and list(store) == keys
print(len(keys))
"""
LIMIT = 150_000


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_file_that_may_not_grow_is_a_clear_error_and_loses_nothing(tmp_path):
    done = run(sys.executable, "-c", PROGRAM, str(tmp_path), str(LIMIT))
    assert done.returncode == 0, done.stderr
    *messages, count = done.stdout.splitlines()
    assert all("storing a snapshot" in m and "File too large" in m for m in messages)
    store = sg.SnapshotStore(tmp_path)
    assert len(store) == int(count)
    assert store.verify() == []
    for seed, key in enumerate(list(store)[:-1]):
        assert_same(store.get(key), with_noise(seed))


def test_a_full_file_system_is_a_clear_error_and_loses_nothing(tmp_path):
    mount = 'mount -t tmpfs -o size=200k none "$0" && exec "$@"'
    alone = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, str(tmp_path))
    if run(*alone, "true").returncode != 0:
        pytest.skip("this system lets nobody mount a small file system (unshare --user --mount)")
    done = run(*alone, sys.executable, "-c", PROGRAM, str(tmp_path), "0")
    assert done.returncode == 0, done.stderr
    *messages, _ = done.stdout.splitlines()
    assert all("storing a snapshot" in m and "No space left on device" in m for m in messages)
    assert "free some space" in messages[0]


def test_a_full_disk_stops_a_rewrite_without_loss(tmp_path):
    program = """
import resource, sys
import sandboxgym as sg
from sandboxgym.core.errors import StoreError
from tests.store.moments import with_noise

store = sg.SnapshotStore(sys.argv[1])
keys = [store.put(with_noise(seed)) for seed in range(10)]
store.remove(keys.pop(0))
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))
try:
    store.gc()
except StoreError as error:
    print(error)
assert store.verify() == [] and list(store) == keys
"""
    done = run(sys.executable, "-c", program, str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "collecting garbage" in done.stdout
    assert len(list((tmp_path / "packs").iterdir())) == 1
    store = sg.SnapshotStore(tmp_path)
    for seed, key in enumerate(store, start=1):
        assert_same(store.get(key), with_noise(seed))
    assert store.gc() > 9000
