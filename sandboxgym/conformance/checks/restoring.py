"""Taking snapshots and restoring them in the process that took them."""

from __future__ import annotations

import numpy as np

from sandboxgym.conformance.check import check
from sandboxgym.conformance.lab import Case, Lab
from sandboxgym.conformance.subject import Subject


@check("04-snapshot-is-pure", needs=("01",))
def snapshot_is_pure(lab: Lab) -> None:
    """A snapshot that changes what comes later poisons the very run that it was taken from."""
    subject = lab.make()
    for script in lab.in_turn():
        lab.same(script.trace[0], subject.reset(script.seed), "reset", 0)
        for step, action in enumerate(script.actions):
            first, second = subject.snapshot(), subject.snapshot()
            lab.same_moment(first, second, f"two snapshots of step {step}, one after the other")
            seen = subject.step(action)
            how = f"with snapshots before each step, step {step + 1}"
            lab.same(script.trace[step + 1], seen, how, step + 1)


@check("05-restore-returns-the-moment", needs=("04",))
def restore_returns_the_moment(lab: Lab) -> None:
    """The agent that continues has to see what the agent at the snapshot saw."""
    for case in lab.cases():
        seen = case.maker.restore(case.snapshot)
        lab.same(case.moment, seen, f"restored to step {case.at}", case.at)
        last = {"obs": case.snapshot.last.obs, **_flags(case.snapshot.last.as_dict())}
        expected = {"obs": case.moment["obs"], **_flags(case.past[-1])}
        lab.same(expected, last, f"the snapshot's record of step {case.at}", case.at)


def _flags(seen: dict[str, object]) -> dict[str, object]:
    return {name: bool(seen.get(name)) for name in ("terminated", "truncated")}


@check("06-restored-continues-exactly", needs=("04",))
def restored_continues_exactly(lab: Lab) -> None:
    """A fork that goes another way than the original is another world."""
    for case in lab.cases():
        case.maker.restore(case.snapshot)
        lab.continues(case.maker, case, "restored to step")


@check("07-restore-into-a-used-instance", needs=("06",))
def restore_into_a_used_instance(lab: Lab) -> None:
    """Pools restore into whatever instance is free; nothing of its last episode may stay behind."""
    used = lab.make()
    for case in lab.cases():
        lab.use(used, case)
        used.restore(case.snapshot)
        lab.continues(used, case, "restored in an instance that has played, to step")


@check("08-restore-into-a-fresh-instance", needs=("06",))
def restore_into_a_fresh_instance(lab: Lab) -> None:
    """A new worker has never been reset, and has to take over all the same."""
    for case in lab.cases():
        fresh = lab.make()
        fresh.restore(case.snapshot)
        lab.continues(fresh, case, "restored in an instance that was never reset, to step")


@check("14-many-restores-in-any-order", needs=("07",))
def many_restores_in_any_order(lab: Lab) -> None:
    """A search comes back to a moment many times, by other ways, and goes on from there."""
    maker, searcher = lab.make(), lab.make()
    cases = list(lab.cases(maker=maker))
    searcher.reset(lab.seeds[0])
    order = np.random.default_rng(0).permutation(np.repeat(np.arange(len(cases)), 3))
    for visit, index in enumerate(order):
        case = cases[index]
        lab.doing = case.script
        for subject in (maker, searcher):
            seen = subject.restore(case.snapshot)
            if visit % 2:
                lab.detour(subject, seen, 3, salt=int(visit))
                subject.restore(case.snapshot)
            _continue_nested(lab, subject, case)


def _continue_nested(lab: Lab, subject: Subject, case: Case) -> None:
    """Go on from a restored moment by way of a snapshot of it."""
    nested = subject.snapshot()
    lab.continues(subject, case, "restored out of order, to step")
    subject.restore(nested)
    lab.continues(subject, case, "restored from a snapshot of a restored step")


@check("19-at-step-zero", needs=("07", "08"))
def at_step_zero(lab: Lab) -> None:
    """Groups of episodes start from one snapshot right after reset."""
    maker = lab.make()
    for script in lab.in_turn():
        for subject in (maker, lab.make()):
            case = lab.case(maker, script, 0)
            lab.same(case.moment, subject.restore(case.snapshot), "restored to step 0", 0)
            lab.continues(subject, case, "restored to step")
