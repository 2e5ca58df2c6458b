"""The digest: equal states, equal digests; equal digests, equal futures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sandboxgym.conformance.check import check
from sandboxgym.conformance.lab import Case, CheckFailedError, Lab, Seen, Subject
from sandboxgym.core.digest import first_difference
from sandboxgym.core.snapshot import Snapshot

ALTERNATIVES = 4


@check("22-digest", needs=("06",))
def digest(lab: Lab) -> None:
    """Replays are accepted, and equal states found, by the digest alone."""
    one, other = lab.make(), lab.make()
    for script in lab.in_turn():
        digests = _digests(one, script.seed, script.actions)
        lab.detour(one, one.reset(script.seed + 1), 3, salt=1)
        for subject, how in ((one, "in the same instance"), (other, "in another instance")):
            again = _digests(subject, script.seed, script.actions)
            for step, (expected, found) in enumerate(zip(digests, again, strict=True)):
                where = f"the digest {how} after the same {step} actions"
                lab.same(expected, found, where, step)
    for case in lab.cases():
        case.maker.restore(case.snapshot)
        where = f"the digest of the restored step {case.at}"
        lab.same(case.snapshot.digest, case.maker.digest(), where, case.at)
        _equal_digests_mean_equal_futures(lab, case)


def _digests(subject: Subject, seed: int, actions: Sequence[Any]) -> list[str]:
    subject.reset(seed)
    digests = [subject.digest()]
    for action in actions:
        subject.step(action)
        digests.append(subject.digest())
    return digests


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
                f"after step {case.at} the actions {known_action!r} and {action!r} lead to the "
                "same digest, but not to the same future: the state lacks the difference",
                difference,
                case.at,
            )


def _future(subject: Subject, snapshot: Snapshot, actions: Sequence[Any]) -> list[Seen]:
    if snapshot.last.ended:
        return []
    subject.restore(snapshot)
    return subject.play(actions)
