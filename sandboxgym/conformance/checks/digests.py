"""The digest: equal states, equal digests; equal digests, equal futures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sandboxgym.conformance.check import check
from sandboxgym.conformance.lab import Case, Lab, Script
from sandboxgym.conformance.outcome import CheckFailedError
from sandboxgym.conformance.subject import Seen, Subject, ended
from sandboxgym.core.digest import first_difference
from sandboxgym.core.snapshot import Snapshot

ALTERNATIVES = 4


@check("22-digest", needs=("14",))
def digest(lab: Lab) -> None:
    """Replays are accepted, and equal states found, by the digest alone."""
    one, other = lab.make(), lab.make()
    for script in lab.in_turn():
        first, second = _snapshots(one, script), _snapshots(other, script)
        for step, (expected, found) in enumerate(zip(first, second, strict=True)):
            _same_state(expected, found, f"two instances that did the same, step {step}")
    for case in lab.cases():
        case.maker.restore(case.snapshot)
        found = case.maker.snapshot()
        _same_state(case.snapshot, found, f"a snapshot of the restored step {case.at}")
        _equal_digests_mean_equal_futures(lab, case)


def _snapshots(subject: Subject, script: Script) -> list[Snapshot]:
    """Snapshots of all steps of an episode."""
    subject.reset(script.seed)
    snapshots = [subject.snapshot()]
    for action in script.actions:
        subject.step(action)
        snapshots.append(subject.snapshot())
    return snapshots


def _same_state(expected: Snapshot, found: Snapshot, where: str) -> None:
    """Fail unless the digests agree, naming the first leaf of the state that does not."""
    if expected.digest == found.digest:
        return
    seen = ("['last']", "['recipe']")  # no part of the digest
    differences = (d for d in expected.diff(found) if not d.path.startswith(seen))
    raise CheckFailedError(f"the digests differ: {where}", next(differences, None), expected.step)


def _equal_digests_mean_equal_futures(lab: Lab, case: Case) -> None:
    """Go other ways from one moment; where two ways seem to meet, see whether they do."""
    met: dict[str, tuple[Any, Snapshot]] = {}
    for salt in range(ALTERNATIVES):
        way = lab.detour(case.maker, case.maker.restore(case.snapshot), 1, salt=20 + salt)
        snapshot = case.maker.snapshot()
        action = way.actions[0]
        if snapshot.digest not in met:
            met[snapshot.digest] = (action, snapshot)
            continue
        known_action, known = met[snapshot.digest]
        if not first_difference(known_action, action):
            continue
        difference = first_difference(
            _future(case.maker, known, case.rest), _future(case.maker, snapshot, case.rest)
        )
        if difference is not None:
            raise CheckFailedError(
                f"after step {case.at} the actions {known_action} and {action} lead to the "
                "same digest, but not to the same future: the state lacks the difference",
                difference,
                case.at,
            )


def _future(subject: Subject, snapshot: Snapshot, actions: Sequence[Any]) -> list[Seen]:
    """What these actions give, as far as the episode goes."""
    subject.restore(snapshot)
    seen: list[Seen] = []
    for action in actions:
        if ended(seen[-1]) if seen else snapshot.last.ended:
            break
        seen.append(subject.step(action))
    return seen
