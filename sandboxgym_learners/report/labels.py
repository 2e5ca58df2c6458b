"""Name the variants of an algorithm: runs with other settings are no seeds of the same thing.

Runs of one algorithm that differ in more than their seed get the settings in which they differ
behind the algorithm's name: `bpo (branching=fixed)` and `bpo (branching=adaptive)`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from sandboxgym_learners.report.load import Run

ASIDE = {
    *("algo", "seed", "out", "budget", "resume", "threads", "tensorboard"),
    *("tree_every", "eval_every", "checkpoint_every"),
}
"""Settings that make no other method: which run it is, how long, and what is written down."""

MOST_SETTINGS = 3
LONGEST_VALUE = 32


def labelled(runs: Sequence[Run]) -> list[Run]:
    """The same runs, each with the name of its variant where there are several."""
    settings = {id(run): dict(_flat(run.config)) for run in runs}
    named = []
    for run in runs:
        variants = [settings[id(other)] for other in runs if other.algo == run.algo]
        own = settings[id(run)]
        different = _different(own, variants)
        named.append(replace(run, algo=_label(run.algo, own, different)) if different else run)
    return _told_apart(named, [settings[id(run)] for run in runs])


def _flat(config: dict[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """The settings by their dotted names; their values as text."""
    for name, value in config.items():
        if not above and name in ASIDE:
            continue
        if isinstance(value, dict):
            yield from _flat(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value if isinstance(value, str) else json.dumps(value)


def _different(own: dict[str, str], variants: Sequence[dict[str, str]]) -> list[str]:
    """The settings that are not the same in all variants."""
    names = dict.fromkeys([*own, *(name for settings in variants for name in settings)])
    return [name for name in names if len({settings.get(name) for settings in variants}) > 1]


def _label(algo: str, own: dict[str, str], different: Sequence[str]) -> str:
    shown = [
        f"{name.rpartition('.')[2]}={_short(own.get(name, 'unset'))}"
        for name in different[:MOST_SETTINGS]
    ]
    if len(different) > MOST_SETTINGS:
        shown.append("…")
    return f"{algo} ({', '.join(shown)})"


def _short(value: str) -> str:
    return value if len(value) <= LONGEST_VALUE else f"{value[: LONGEST_VALUE - 1]}…"


def _told_apart(runs: Sequence[Run], settings: Sequence[dict[str, str]]) -> list[Run]:
    """Number the labels that were cut to the same text though the settings differ."""
    numbers: dict[str, list[dict[str, str]]] = {}
    told = []
    for run, own in zip(runs, settings, strict=True):
        known = numbers.setdefault(run.algo, [])
        if own not in known:
            known.append(own)
        number = known.index(own) + 1
        told.append(run if number == 1 else replace(run, algo=f"{run.algo} #{number}"))
    return told
