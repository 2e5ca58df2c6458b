"""The table in docs/wrappers.md says what the rules say."""

from __future__ import annotations

from pathlib import Path

from gymnasium import wrappers

from sandboxgym.core.wrapper_rules import GYMNASIUM_RULES, WrapperRule

PAGE = Path(__file__).parents[2] / "docs" / "wrappers.md"
NEEDS_A_FRONT = "needs a `Forkable` around it"


def table() -> str:
    rows = ["| Wrapper | What is captured | What else to know |", "|---|---|---|"]
    for name, rule in GYMNASIUM_RULES.items():
        if name.startswith("gymnasium."):
            rows.append(f"| `{name.rpartition(':')[2]}` | {rule.captured} | {_known(rule)} |")
    return "\n".join(rows)


def _known(rule: WrapperRule) -> str:
    parts = [NEEDS_A_FRONT if rule.view is None else "", rule.note]
    return "; ".join(part for part in parts if part)


def test_the_page_has_the_table_of_the_rules():
    assert table() in PAGE.read_text("utf-8"), f"docs/wrappers.md should have\n\n{table()}\n"


def test_every_wrapper_of_this_gymnasium_has_a_rule_and_a_row():
    ruled = {name.rpartition(":")[2] for name in GYMNASIUM_RULES}
    assert {name for name in wrappers.__all__ if name != "vector"} <= ruled
