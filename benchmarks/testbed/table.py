"""The tables of docs/testbed.md, made from the results."""

from __future__ import annotations

from itertools import groupby
from typing import Any

BEGIN, END = "<!-- made by python -m benchmarks.testbed --write-docs -->", "<!-- end -->"


def with_table(page: str, results: dict[str, Any]) -> str:
    """A page whose part between the two marks is the table of these results."""
    before, _, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"the page has no place for the table, between {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{render(results)}\n{END}{after}"


def render(results: dict[str, Any]) -> str:
    """Markdown: a table for each family, then why better mechanisms were not taken."""
    rows = list(results["environments"].values())
    parts = []
    for family, members in groupby(rows, key=lambda row: row["family"]):
        parts += [f"### {family}", "", *_table(list(members)), ""]
    parts += ["### What was not taken, and why", "", *_reasons(rows)]
    return "\n".join(parts)


def _table(rows: list[dict[str, Any]]) -> list[str]:
    head = (
        "| Environment | Mechanism | Ends | Round trips | Silent differences | Step, plain | Step "
        "| Snapshot | Restore | Fork | Conformance |"
    )
    return [head, "|---|---|---|--:|--:|--:|--:|--:|--:|--:|---|", *map(_row, rows)]


def _row(row: dict[str, Any]) -> str:
    if row["verdict"] == "refused":
        cells = [row["id"], "none", "refused", *[""] * 7, ""]
    else:
        times = row["latency_ms"]
        names = ("plain_step", "step", "snapshot", "restore", "fork")
        cells = [
            row["id"],
            row["mechanism"] + ("" if row["fidelity"]["portable"] else " (not portable)"),
            row["verdict"] + (f", {row['refusals']} refusals" if row["refusals"] else ""),
            f"{row['round_trips']:,}",
            str(row["silent_differences"]),
            *[_ms(times[name]) for name in names],
            _counts(row.get("conformance")),
        ]
    return "| " + " | ".join(cells) + " |"


def _ms(value: float) -> str:
    digits = 3 if value < 0.1 else 2 if value < 10 else 0
    return f"{value:.{digits}f} ms"


def _counts(counts: dict[str, Any] | None) -> str:
    if counts is None:
        return ""
    return ", ".join(f"{number} {status}" for status, number in counts["counts"].items() if number)


def _reasons(rows: list[dict[str, Any]]) -> list[str]:
    lines = []
    for row in rows:
        lines += [
            f"- **{row['id']}**, not {each['mechanism']}: {each['reason']}"
            for each in row["rejected"]
        ]
        lines += [f"- **{row['id']}** refused: {text}" for text in row["refusal_messages"]]
    return lines
