"""A short fuzz of everything that is read from files.

For a long one set SANDBOXGYM_FUZZ_SECONDS, or run the coverage-guided fuzzer of this package.
"""

from __future__ import annotations

import os
import random
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.fuzz import oracle, seeds
from tests.fuzz.mutations import mutate_bytes, mutate_file, mutate_pack

SECONDS = float(os.environ.get("SANDBOXGYM_FUZZ_SECONDS", "0"))
SHARED_MEMORY = Path("/dev/shm") if Path("/dev/shm").is_dir() else None


def fuzz(examples):
    """Settings of a short run; for a long one, an example goes on until the time is up."""
    return settings(
        max_examples=1 if SECONDS else examples,
        deadline=None,
        phases=[Phase.explicit, Phase.generate] if SECONDS else list(Phase),
        suppress_health_check=list(HealthCheck),
    )


def attempts(attempt, seed):
    """One attempt, or attempts with the seeds that follow until the time is up."""
    end = time.monotonic() + SECONDS
    first = seed
    while seed == first or time.monotonic() < end:
        try:
            attempt(random.Random(seed))
        except oracle.Finding as finding:
            raise oracle.Finding(f"{finding} (seed {seed})") from finding
        seed += 1
    if SECONDS:
        print(f"{attempt.__name__}: {seed - first} executions")


def limited_memory():
    resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))


@pytest.fixture(scope="module", autouse=True)
def watched():
    oracle.watch()
    for file in seeds.files():
        assert oracle.check_file(file)
    for pack in seeds.packs():
        assert oracle.check_pack(pack, SHARED_MEMORY) > 0


def changed(mutate, data, dice):
    for _ in range(dice.randint(1, 4)):
        data = mutate(data, dice)
    return data


@fuzz(1500)
@given(st.integers(0))
def test_a_changed_file_is_a_snapshot_or_an_error(seed):
    def file(dice):
        oracle.check_file(changed(mutate_file, dice.choice(seeds.files()), dice))

    attempts(file, seed)


@fuzz(300)
@given(st.integers(0))
def test_a_changed_pack_is_a_store_in_which_all_is_found_or_named(seed):
    def pack(dice):
        found = changed(mutate_pack, dice.choice(seeds.packs()), dice)
        oracle.check_pack(found, SHARED_MEMORY, closed=dice.random() < 0.5)

    attempts(pack, seed)


@fuzz(200)
@given(st.integers(0))
def test_a_changed_manifest_is_a_store_or_an_error(seed):
    def manifest(dice):
        oracle.check_manifest(changed(mutate_bytes, oracle.manifest_seed(), dice), SHARED_MEMORY)

    attempts(manifest, seed)


PROGRAM = """
import random
from tests.fuzz import oracle, seeds
from tests.fuzz.mutations import mutate_file

oracle.watch()
dice = random.Random(1)
files = seeds.files()
for _ in range(500):
    oracle.check_file(mutate_file(dice.choice(files), dice))
oracle.check_file(files[0])
print("done")
"""


def test_nothing_takes_more_memory_than_it_may():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        preexec_fn=limited_memory,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "done\n", done.stderr


def test_the_oracle_finds_what_it_is_for(monkeypatch):
    file = seeds.files()[0]

    def guilty(act):
        def from_bytes(data, **limits):
            act()

        monkeypatch.setattr(oracle.sg.Snapshot, "from_bytes", from_bytes)
        with pytest.raises(oracle.Finding):
            oracle.check_file(file)

    guilty(lambda: 1 / 0)
    guilty(lambda: eval("1 + 1"))  # noqa: S307 - what must not happen
    guilty(lambda: __import__("this_is_no_module"))
    guilty(lambda: Path(__file__).read_bytes())
    guilty(lambda: [time.process_time() for _ in iter(spent, True)])


def spent(start=[]):  # noqa: B006 - remembers when it was called first
    start.append(time.process_time())
    return start[-1] - start[0] > 1.1
