"""A coverage-guided fuzzer (atheris) of snapshot files and of stores.

    python -m tests.fuzz.coverage_guided file 600     # seconds
    python -m tests.fuzz.coverage_guided pack 600

Changes are those of `tests.fuzz.mutations`, so that they get past checksums; which of their results
are changed further is decided by the code of sandboxgym that they reach. The rules are those of
`tests.fuzz.oracle`, and memory is limited to 1 GiB. Ends with exit status 0 and the number of
executions, or with the finding and the file that shows it. (pip install atheris)
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["sandboxgym.core", "sandboxgym.store"]):
    from tests.fuzz import oracle, seeds

from tests.fuzz.mutations import mutate_file, mutate_pack

MEMORY_MIB = 1024
MAX_LENGTH = 2**17


def main() -> None:
    target, seconds = sys.argv[1], int(sys.argv[2])
    check: Callable[[bytes], object]
    if target == "file":
        check, mutate, corpus = oracle.check_file, mutate_file, seeds.files()
    elif target == "pack":
        check, mutate, corpus = oracle.check_pack, mutate_pack, seeds.packs()
    else:
        raise SystemExit(f"there is no target {target!r}: file or pack")
    oracle.watch()
    folder = Path(tempfile.mkdtemp(prefix=f"fuzz-{target}-"))
    for i, seed in enumerate(corpus):
        check(seed)
        (folder / f"seed-{i}").write_bytes(seed)

    def mutated(data: bytes, max_size: int, seed: int) -> bytes:
        return mutate(data, random.Random(seed))[:max_size]

    options = [
        sys.argv[0],
        f"-max_total_time={seconds}",
        f"-rss_limit_mb={MEMORY_MIB}",
        f"-max_len={MAX_LENGTH}",
        "-timeout=60",  # by the clock, on a busy machine; the oracle goes by the processor's time
        f"-artifact_prefix={folder}/",
        "-print_final_stats=1",
        str(folder),
    ]
    atheris.Setup(options, check, custom_mutator=mutated)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
