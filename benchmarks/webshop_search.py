"""What a catalogue as large as the full WebShop costs: making it, opening it, searching it.

    python -m benchmarks.webshop_search --out benchmarks/results/webshop_search.json

Makes a shop of `--products` generated products in files (some minutes for the 1.18 million of the
full catalogue), unless `--folder` has it from an earlier run. Then a new process opens it and
searches for instructions of goals, and for long and common words. Memory is what the system counts
as resident: `anonymous` belongs to the process alone, the rest are mapped files that the system can
take back at any time. Times are in milliseconds; on a busy machine the processor time says more.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

from sandboxgym.sandboxes.webshop import opening, original, stored, synthetic

FULL = 1_180_000
COMMON = "for women men with color size black white shoes soft easy clean home kitchen pack new "


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--products", type=int, default=FULL)
    parser.add_argument("--folder", type=Path, help="where the shop is or is to be kept")
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--out", type=Path, help="write the JSON here too")
    parser.add_argument("--opened-only", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.opened_only:
        print(json.dumps(opened(options.folder, options.queries)))
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch) / "shop"
        result = {
            "machine": {
                "python": platform.python_version(),
                "cpu": platform.machine(),
                "cores": os.cpu_count(),
                "load": round(os.getloadavg()[0], 1),
            },
            "products": options.products,
            "making": None if folder.is_dir() else made(options.products, folder),
            "bytes_on_disk": sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()),
            "in_a_new_process": in_a_new_process(folder, options.queries),
        }
    print(json.dumps(result, indent=2))
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(result, indent=2) + "\n")


def made(number: int, folder: Path) -> dict[str, float]:
    begin = time.perf_counter()
    products = (
        original.product_of(listing.product, listing.instruction, listing.human)
        for listing in synthetic.listings(number)
    )
    stored.build(products, folder)
    seconds = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"seconds": round(seconds, 1), "peak_mb": round(peak / 1024)}


def in_a_new_process(folder: Path, queries: int) -> Any:
    command = [sys.executable, __file__, "--opened-only", "--folder", str(folder)]
    command += ["--queries", str(queries)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def opened(folder: Path, queries: int) -> dict[str, Any]:
    begin = time.perf_counter()
    shop = stored.open_stored(folder)
    goals = shop.goals("synthetic", 233)
    opening_s = time.perf_counter() - begin
    generator = random.Random(0)
    instructions = [goals[generator.randrange(len(goals))].instruction for _ in range(queries)]
    after_opening = memory()
    result = {
        "open_s": round(opening_s, 2),
        "goals": len(goals),
        "memory_after_opening": after_opening,
        "search_ms": {
            "first": searched(shop, instructions[:1]),
            "instructions": searched(shop, instructions[1:]),
            "short": searched(shop, [" ".join(text.split()[2:5]) for text in instructions]),
            "common_words": searched(shop, [COMMON + str(i) for i in range(20)]),
        },
    }
    begin = time.perf_counter()
    for _ in range(1000):
        shop.catalogue[generator.randrange(len(shop.catalogue))]
    result["read_a_product_ms"] = round(time.perf_counter() - begin, 4)
    result["memory_at_the_end"] = memory()
    return result


def searched(shop: Any, queries: list[str]) -> dict[str, float]:
    times, processor = [], []
    for query in queries:
        begin, worked = time.perf_counter(), time.process_time()
        shop.found(query)
        times.append(1000 * (time.perf_counter() - begin))
        processor.append(1000 * (time.process_time() - worked))
    times.sort()
    return {
        "median": round(times[len(times) // 2], 2),
        "worst_of_twenty": round(times[int(len(times) * 0.95)], 2),
        "worst": round(times[-1], 2),
        "median_of_processor_time": round(statistics.median(processor), 2),
    }


def memory() -> dict[str, int]:
    """Resident memory in MB."""
    with Path("/proc/self/status").open() as file:
        fields = dict(line.split(":", 1) for line in islice(file, 100))
    names = {"resident": "VmRSS", "peak": "VmHWM", "anonymous": "RssAnon"}
    return {name: int(fields[field].split()[0]) // 1024 for name, field in names.items()}


if __name__ == "__main__":
    assert opening.LARGE < FULL
    main()
