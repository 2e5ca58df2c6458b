"""The published results of the test bed, and the page that shows them."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.testbed.environments import ENTRIES
from benchmarks.testbed.table import with_table

ROOT = Path(__file__).parents[1]
RESULTS = json.loads((ROOT / "benchmarks" / "results" / "testbed.json").read_text("utf-8"))
ROWS = RESULTS["environments"]


def test_the_page_shows_the_results():
    page = (ROOT / "docs" / "testbed.md").read_text("utf-8")
    assert with_table(page, RESULTS) == page, "run python -m benchmarks.testbed --write-docs"


def test_every_environment_ends_exact_or_refused():
    assert {row["verdict"] for row in ROWS.values()} <= {"exact", "refused"}
    assert sum(row["silent_differences"] for row in ROWS.values()) == 0


def test_each_was_forked_a_thousand_times_unless_a_fork_takes_long():
    for name, row in ROWS.items():
        if row["verdict"] != "refused":
            takes_long = row["latency_ms"]["fork"] > 500
            assert row["round_trips"] >= (500 if takes_long else 1000), name


def test_no_environment_is_left_out():
    versions = {name.replace("Taxi-v4", "Taxi-v3") for name in ENTRIES}
    assert set(ROWS) >= versions - {"Taxi-v3"}
