"""A small game that is nothing like ALFWorld, with all that the formats allow.

Types four levels deep, quantifiers, conditional effects, negated and disjunctive conditions,
queries over supertypes, denials, lists of every length, and the stock template parser's habits.
`workshop_data/stock.json.gz` has what the stock engine (TextWorld 1.7, ALFWorld 0.4.2) says to it.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

_DATA = Path(__file__).with_name("workshop_data")

DOMAIN = (_DATA / "domain.pddl").read_text("utf-8")
GRAMMAR = (_DATA / "grammar.twl2").read_text("utf-8")
PROBLEM = (_DATA / "problem.pddl").read_text("utf-8")


def text(**changes: Any) -> str:
    """The game's file, with changes."""
    parts = {"pddl_domain": DOMAIN, "pddl_problem": PROBLEM, "grammar": GRAMMAR}
    return json.dumps({**parts, "walkthrough": ["look"], "solvable": True, **changes})


def recordings() -> list[dict[str, Any]]:
    """What the stock engine said: problems, each with steps of action, obs, admissible and won."""
    with gzip.open(_DATA / "stock.json.gz", "rt") as file:
        recorded: list[dict[str, Any]] = json.load(file)
    return recorded
