from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
import traceback

import pytest

import sandboxgym as sg
from tests.store.moments import assert_same, walk, with_noise
from tests.store.writer import moments_of

PLENTY = 10**9


@contextlib.contextmanager
def writers(folder, n, count, budget):
    running = [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.store.writer",
                folder,
                str(seed),
                str(count),
                str(budget),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in range(n)
    ]
    try:
        yield running
    finally:
        for process in running:
            process.kill()
            process.wait()
            process.stdout.close()


def assert_has(folder, keys, moments, *, cold=False):
    store = sg.SnapshotStore(folder, budget_bytes=0 if cold else 2**24)
    assert store.verify() == []
    for key, moment in zip(keys, moments, strict=False):
        found = store.get(key)
        assert_same(found, moment if found.state is not None else moment.drop_state())


@pytest.mark.parametrize("budget", [PLENTY, 150_000])
def test_several_processes_write_and_one_reads_at_once(tmp_path, budget):
    n, count = 3, 60
    reader = sg.SnapshotStore(tmp_path, disk_budget_bytes=budget)
    with writers(tmp_path, n, count, budget) as running:
        while any(process.poll() is None for process in running):
            for key in list(reader)[-5:]:
                assert len(reader.get(key).digest) == 32
            if budget == PLENTY:
                reader.gc()
        keys = [process.stdout.read().split()[1:] for process in running]
        assert [process.wait() for process in running] == [0] * n
    assert len(reader) == sum(map(len, keys)) == sum(len(moments_of(s, count)) for s in range(n))
    for seed in range(n):
        assert_has(tmp_path, keys[seed], moments_of(seed, count))
    if budget != PLENTY:
        states = [entry.state for entry in reader.ls()]
        assert 0 < states.count("dropped") < len(states)


def test_threads_of_one_process_share_a_store(tmp_path):
    store = sg.SnapshotStore(tmp_path)
    keys: dict[int, list[str]] = {}

    def put(seed):
        keys[seed] = [store.put(moment) for moment in moments_of(seed, 20)]

    threads = [threading.Thread(target=put, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in range(3):
        assert_has(tmp_path, keys[seed], moments_of(seed, 20))


def test_a_fork_of_a_process_goes_on_with_the_same_store(tmp_path):
    store = sg.SnapshotStore(tmp_path)
    pinned = store.put(walk(0)[0])
    store.pin(pinned)
    moments = moments_of(5, 20)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            for moment in moments[::2]:
                store.pin(store.put(moment))
            status = 0
        finally:
            os._exit(status)
    keys = [store.put(moment) for moment in moments]
    assert os.waitpid(child, 0)[1] == 0
    assert_has(tmp_path, keys, moments)
    with pytest.raises(sg.SandboxGymError, match="pinned"):
        store.remove(pinned)
    store.remove(keys[0])


WRITTEN = {seed: moments_of(seed, 60) for seed in range(10)}


@pytest.mark.parametrize("kills", [40, pytest.param(200, marks=pytest.mark.slow)])
def test_a_process_killed_at_any_moment_of_writing_loses_nothing_that_it_was_told_is_stored(
    tmp_path, kills
):
    dice = random.Random(0)
    cut_short = stored = 0
    for moment in range(kills):
        seed = moment % 10
        folder = tmp_path / str(moment // 10)  # a store that survived goes on being used
        child, output = forked(write, folder, seed, PLENTY if moment % 20 < 10 else 60_000)
        time.sleep(dice.uniform(0, 0.08))
        os.kill(child, signal.SIGKILL)
        keys = keys_of(child, output)
        cut_short += len(keys) < len(WRITTEN[seed])
        stored += len(keys)
        if folder.exists():
            assert_has(folder, keys, WRITTEN[seed])
        else:
            assert keys == []
    assert cut_short > kills // 2
    assert stored > kills // 2


@pytest.mark.slow
def test_a_process_killed_at_any_system_call_loses_nothing_that_it_was_told_is_stored(tmp_path):
    calls = 0
    while True:
        folder = tmp_path / str(calls)
        child, output = forked(write_until_call, folder, calls)
        keys = keys_of(child, output)
        if keys[-1:] == ["done"]:
            break
        if (folder / "store.json").exists():
            assert_has(folder, keys, FEW)
            store = sg.SnapshotStore(folder, disk_budget_bytes=BUDGET)
            assert_same(store.get(store.put(with_noise(77))), with_noise(77))
            store.gc()
            assert store.verify() == []
        else:
            assert keys == []
            sg.SnapshotStore(folder).put(FEW[0])
        calls += 1
    assert calls > 100


FEW = [with_noise(seed, 3000) for seed in range(8)]
BUDGET = 17_000
SYSTEM_CALLS = ("open", "pwrite", "fsync", "ftruncate", "unlink", "replace")


def write_until_call(into, folder, last):
    """Write with little room, and die in the middle of one system call."""
    count = 0

    def dying(name, call):
        def called(*args, **kwargs):
            nonlocal count
            count += 1
            if count > last:
                if name == "pwrite":
                    call(args[0], args[1][: len(args[1]) // 2], args[2])
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*args, **kwargs)

        return called

    for name in SYSTEM_CALLS:
        setattr(os, name, dying(name, getattr(os, name)))
    store = sg.SnapshotStore(folder, disk_budget_bytes=BUDGET)
    for moment in FEW:
        os.write(into, store.put(moment).encode() + b"\n")
    extra = store.put(walk(3)[-1])
    store.remove(extra)
    store.gc()
    os.write(into, b"done\n")


def write(into, folder, seed, budget):
    store = sg.SnapshotStore(folder, disk_budget_bytes=budget)
    for i, moment in enumerate(WRITTEN[seed]):
        os.write(into, store.put(moment).encode() + b"\n")
        if i % 10 == 9:
            store.gc()


def forked(function, *args):
    """A process that runs `function` with a pipe to write to; its id, and the pipe's other end."""
    output, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            function(into, *args)
        except Exception:  # noqa: BLE001 - shown, and the missing lines make the test fail
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(into)
    return child, output


def keys_of(child, output):
    """The whole lines that a process wrote before it ended."""
    os.waitpid(child, 0)
    with os.fdopen(output) as lines:
        return [line.strip() for line in lines if line.endswith("\n")]


def test_what_a_killed_writer_left_unfinished_is_cut_off_by_the_next(tmp_path):
    store = sg.SnapshotStore(tmp_path)
    first = store.put(with_noise(1))
    (pack,) = (tmp_path / "packs").iterdir()
    whole = pack.read_bytes()
    second = store.put(with_noise(2))
    both = pack.read_bytes()
    for end in (len(whole) + 1, len(whole) + 30, len(whole) + 60, len(both) - 1):
        pack.write_bytes(both[:end])
        after = sg.SnapshotStore(tmp_path)
        assert after.verify() == []
        assert_same(after.get(first), with_noise(1))
        assert second not in after
        third = after.put(with_noise(3))
        assert_same(sg.SnapshotStore(tmp_path).get(third), with_noise(3))
        assert sg.SnapshotStore(tmp_path).verify() == []


def test_files_of_changes_that_were_never_finished_count_for_nothing(tmp_path):
    store = sg.SnapshotStore(tmp_path)
    key = store.put(with_noise(1))
    (tmp_path / "packs" / "00000002.pack").write_bytes(b"half a pack")
    (tmp_path / "store.json.77.tmp").write_bytes(b"{")
    after = sg.SnapshotStore(tmp_path)
    assert after.verify() == []
    after.gc()
    assert sorted(p.name for p in tmp_path.rglob("*.*")) == ["00000001.pack", "store.json"]
    assert_same(after.get(key), with_noise(1))
