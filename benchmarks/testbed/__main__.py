"""Run the test bed, in pieces, and write its table.

    python -m benchmarks.testbed "CartPole-v1" "Ant-v5" --seconds 60
    python -m benchmarks.testbed --family MuJoCo --conformance
    python -m benchmarks.testbed --write-docs

Results are added to benchmarks/results/testbed.json: a run goes on where the last one stopped,
until an environment has made `--round-trips`.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
import zlib
from collections import Counter
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import gymnasium as gym

import sandboxgym
from benchmarks.testbed import environments, table
from benchmarks.testbed.environments import ENTRIES, Entry
from benchmarks.testbed.latency import latencies
from benchmarks.testbed.trips import Tally, Traveller

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "testbed.json"
PAGE = ROOT / "docs" / "testbed.md"


def main() -> int:
    """Returns 1 where something differed silently."""
    options = _options()
    for entry in [] if options.write_docs else _chosen(options):
        if environments.installed(entry):
            _save(entry, _found(entry, _load()["environments"].get(entry.id), options))
        else:
            print(f"{entry.id}: {entry.needs} is not installed")
    results = _load()
    if options.write_docs:
        PAGE.write_text(table.with_table(PAGE.read_text("utf-8"), results), "utf-8")
    return int(any(row["silent_differences"] for row in results["environments"].values()))


def _load() -> dict[str, Any]:
    if not RESULTS.exists():
        return {"environments": {}}
    results: dict[str, Any] = json.loads(RESULTS.read_text("utf-8"))
    return results


def _save(entry: Entry, found: dict[str, Any]) -> None:
    """Add to the results as they are now: another run may have added to them meanwhile."""
    results = _load()
    rows = results["environments"]
    rows[entry.id] = {**rows.get(entry.id, {}), **found}
    results.update(
        python=platform.python_version(),
        gymnasium=gym.__version__,
        environments={name: rows[name] for name in ENTRIES if name in rows},
    )
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", "utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_Raw)
    parser.add_argument("ids", nargs="*", help="environments of the test bed; all by default")
    parser.add_argument("--family", help="those of one family")
    parser.add_argument("--round-trips", type=int, default=1000, help="for each environment")
    parser.add_argument("--seconds", type=float, default=110.0, help="at most, for each")
    parser.add_argument("--conformance", action="store_true", help="run the conformance suite")
    parser.add_argument("--latencies", action="store_true", help="measure the times alone, anew")
    parser.add_argument("--anew", action="store_true", help="forget earlier results")
    parser.add_argument("--write-docs", action="store_true", help="write the table, run nothing")
    return parser.parse_args()


class _Raw(argparse.RawDescriptionHelpFormatter):
    """Keeps the examples on lines of their own."""


def _chosen(options: argparse.Namespace) -> list[Entry]:
    for name in options.ids:
        if name not in ENTRIES:
            raise SystemExit(f"{name!r} is not in the test bed: {', '.join(ENTRIES)}")
    return [
        entry
        for entry in ENTRIES.values()
        if (not options.ids or entry.id in options.ids)
        and (options.family is None or entry.family == options.family)
    ]


def _found(
    entry: Entry, before: dict[str, Any] | None, options: argparse.Namespace
) -> dict[str, Any]:
    before = None if options.anew else before
    if options.conformance and before is not None:
        return {"conformance": _conformance(entry, options.seconds)}
    if options.latencies and before is not None and before["verdict"] != "refused":
        with closing(environments.make_forkable(entry.id)) as env:
            plain = environments.make(entry.id)
            return {"latency_ms": latencies(env, plain, entry.depth)}
    if before is not None and before["round_trips"] >= options.round_trips:
        return {}
    print(entry.id, end=": ", flush=True)
    try:
        env = environments.make_forkable(entry.id)
    except sandboxgym.SandboxGymError as error:
        print("refused:", error)
        return _refused(entry, error)
    try:
        row = _travelled(entry, env, before, options)
    finally:
        env.close()
    print(
        f"{row['mechanism']}, {row['round_trips']} round trips, {row['silent_differences']} silent "
        f"differences, {row['refusals']} refusals",
        flush=True,
    )
    return row


def _travelled(
    entry: Entry, env: Any, before: dict[str, Any] | None, options: argparse.Namespace
) -> dict[str, Any]:
    """Make the round trips that are still to be made, as far as the time allows."""
    done = before["round_trips"] if before else 0
    until = time.monotonic() + options.seconds
    seed = zlib.crc32(f"{entry.id} {done}".encode())
    with ExitStack() as stack:
        twin = stack.enter_context(closing(environments.make(entry.id)))
        other = stack.enter_context(closing(environments.make_forkable(entry.id)))
        traveller = Traveller(env, other, twin, entry.depth, seed)
        while done + traveller.tally.round_trips < options.round_trips and time.monotonic() < until:
            traveller.trip()
        measured = before["latency_ms"] if before else latencies(env, twin, entry.depth)
    return _summary(entry, env, before, traveller.tally, measured)


def _summary(
    entry: Entry,
    env: Any,
    before: dict[str, Any] | None,
    tally: Tally,
    measured: dict[str, float],
) -> dict[str, Any]:
    refused = Counter(before["refusal_messages"] if before else {}) + tally.refused
    differences = (before["differences"] if before else []) + tally.silent
    choice, fidelity = _choice(env), env.unwrapped.fidelity
    return {
        "id": entry.id,
        "family": entry.family,
        "verdict": "exact" if not differences else "silently wrong",
        "mechanism": fidelity.mechanism,
        "why": choice["why"],
        "rejected": choice["rejected"],
        "fidelity": {
            "scope": sorted(fidelity.scope),
            "portable": fidelity.portable,
            "exact": fidelity.exact,
            "cost": fidelity.cost,
        },
        "round_trips": (before["round_trips"] if before else 0) + tally.round_trips,
        "deepest": max(before["deepest"] if before else 0, tally.deepest),
        "silent_differences": len(differences),
        "differences": differences[:5],
        "refusals": sum(refused.values()),
        "refusal_messages": dict(refused),
        "latency_ms": measured,
    }


def _choice(env: Any) -> dict[str, Any]:
    choice = getattr(env.unwrapped, "choice", None)
    if choice is None:
        return {"why": "it has state hooks of its own", "rejected": []}
    rejected = [{"mechanism": each.mechanism, "reason": each.reason} for each in choice.rejected]
    return {"why": choice.why, "rejected": rejected}


def _refused(entry: Entry, error: Exception) -> dict[str, Any]:
    return {
        "id": entry.id,
        "family": entry.family,
        "verdict": "refused",
        "mechanism": None,
        "rejected": [],
        "round_trips": 0,
        "silent_differences": 0,
        "refusals": 1,
        "refusal_messages": {f"{type(error).__name__}: {error}": 1},
    }


def _conformance(entry: Entry, seconds: float) -> dict[str, Any]:
    from sandboxgym.conformance import check_forkable

    report = check_forkable(
        f"{environments.__name__}:make_forkable",
        kwargs={"id": entry.id},
        depth=entry.conformance_depth,
        seeds=range(5),
        time_budget=seconds,
    )
    print(report)
    others = [result for result in report.results if result.status != "passed"]
    return {
        "counts": dict(sorted(Counter(result.status for result in report.results).items())),
        "not_passed": {result.name: f"{result.status}: {result.message}" for result in others},
    }


if __name__ == "__main__":
    raise SystemExit(main())
