"""Random generators: captured exactly, and started anew by `seed=`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sandboxgym.conformance.check import check
from sandboxgym.conformance.lab import Case, CheckFailedError, Lab, Subject
from sandboxgym.core.digest import first_difference
from sandboxgym.core.snapshot import Snapshot

NEW_SEEDS = (101, 102, 103)


@check("16-randomness", needs=("01",))
def randomness(lab: Lab) -> str | None:
    """Twins need the same luck, and branches with a seed of their own need luck of their own."""
    seen_randomness = False
    maker = lab.make()
    for script in lab.in_turn():
        case = lab.case(maker, script, script.moments[0])
        draws = _first_draws(maker, case)
        starts = [_reseeded(lab, maker, case, seed) for seed in NEW_SEEDS]
        if len({snapshot.digest for snapshot in starts}) < len(NEW_SEEDS):
            raise CheckFailedError(
                f"restore(seed=...) gave the same state for the seeds {NEW_SEEDS}: does reseed "
                "start every generator from its seed?",
                step=case.at,
            )
        for snapshot, seed in zip(starts, NEW_SEEDS, strict=True):
            _check_all_start_anew(case, draws, snapshot, seed)
            _check_draws_go_on(maker, case, draws, seed)
            seen_randomness |= _changes_the_future(maker, case, seed)
        maker.restore(case.snapshot)
        lab.continues(maker, case, "restored without a seed after restores with one, to step")
    if seen_randomness:
        return None
    return "a new seed changed nothing that followed: no randomness was seen"


def _restored(maker: Subject, case: Case, seed: int | None = None) -> Snapshot:
    maker.restore(case.snapshot, seed=seed)
    return maker.snapshot()


def _reseeded(lab: Lab, maker: Subject, case: Case, seed: int) -> Snapshot:
    """The moment with a new seed, after making sure that this seed means one future."""
    first = _restored(maker, case, seed)
    way = lab.detour(maker, case.past[-1], 3, salt=7)
    again = _restored(maker, case, seed)
    how = f"restored twice with seed={seed} to step {case.at}"
    lab.same([], [str(d) for d in first.diff(again, limit=1)], how, case.at)
    lab.repeats(maker, way.actions, way.trace[1:], how, after=case.at)
    return first


def _first_draws(maker: Subject, case: Case) -> dict[str, int]:
    """For each generator of the moment that is drawn from later, the first action that does it."""
    start = before = _generators(_restored(maker, case))
    draws: dict[str, int] = {}
    for number, action in enumerate(case.rest):
        maker.step(action)
        after = _generators(maker.snapshot())
        for path in start:
            if first_difference(before.get(path), after.get(path)):
                draws.setdefault(path, number)
        before = after
    return draws


def _check_all_start_anew(case: Case, draws: dict[str, int], reseeded: Snapshot, seed: int) -> None:
    start, anew = _generators(case.snapshot), _generators(reseeded)
    for path in draws:
        if not first_difference(start[path], anew.get(path)):
            raise CheckFailedError(
                f"restore(seed={seed}) left the generator {path} as it was, and the environment "
                "draws from it: override reseed",
                step=case.at,
            )


def _check_draws_go_on(maker: Subject, case: Case, draws: dict[str, int], seed: int) -> None:
    """Up to the first draw a future is the same under any seed, so the same action draws then."""
    if not draws:
        return
    path, number = min(draws.items(), key=lambda item: item[1])
    maker.restore(case.snapshot, seed=seed)
    maker.play(case.rest[:number])
    before = _generators(maker.snapshot())
    maker.step(case.rest[number])
    if not first_difference(before.get(path), _generators(maker.snapshot()).get(path)):
        raise CheckFailedError(
            f"after restore(seed={seed}) the environment no longer draws from {path}: it kept "
            "another generator, which reseed does not reach",
            step=case.at + number + 1,
        )


def _changes_the_future(maker: Subject, case: Case, seed: int) -> bool:
    maker.restore(case.snapshot, seed=seed)
    return any(
        first_difference(expected, maker.step(action))
        for action, expected in zip(case.rest, case.future, strict=True)
    )


def _generators(snapshot: Snapshot) -> dict[str, Any]:
    """States of all generators that a snapshot shows, by path."""
    found = dict(_find_generators(snapshot.state, "state"))
    if snapshot.rng["np_random"] is not None:
        found["np_random"] = snapshot.rng["np_random"]
    return found


def _find_generators(tree: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(tree, dict):
        if "bit_generator" in tree:
            yield path, tree
        else:
            for key, value in tree.items():
                yield from _find_generators(value, f"{path}[{key!r}]")
    elif isinstance(tree, list | tuple):
        for index, value in enumerate(tree):
            yield from _find_generators(value, f"{path}[{index}]")
