"""Snapshots that outlive what made them: as files, as recipes, in other processes."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from sandboxgym.conformance.check import check
from sandboxgym.conformance.lab import Case, Lab, Script
from sandboxgym.conformance.outcome import CheckFailedError
from sandboxgym.conformance.subject import Seen, Subject
from sandboxgym.conformance.worker import play_elsewhere
from sandboxgym.core.errors import SnapshotError
from sandboxgym.core.snapshot import Snapshot
from sandboxgym.core.stack import Stack

HASH_SEED = 3


@check("09-restore-in-another-process", needs=("02", "05", "08", "10"))
def restore_in_another_process(lab: Lab) -> str | None:
    """Snapshots are sent to other workers and hosts, which share no memory with the maker."""
    cases = list(lab.cases())
    snapshots = [(case, case.snapshot) for case in cases]
    recipes = [(case, case.snapshot.drop_state()) for case in cases]
    both = snapshots + recipes
    jobs = [{"snapshot": snap.to_bytes(), "actions": case.rest} for case, snap in both]
    lab.doing = None
    [answers] = play_elsewhere(lab, jobs, [HASH_SEED])
    refused = ""
    for (case, snap), answer in zip(both, answers, strict=True):
        lab.doing = case.script
        what = "replayed" if snap.state is None else "restored"
        how = f"{what} in another process to step {case.at}"
        if isinstance(answer, str):
            refused = _may_refuse(cases[0].maker, f"{how}: {answer}", case.at)
            continue
        expected = [case.moment, *case.future]
        for step, (one, other) in enumerate(zip(expected, answer, strict=True), start=case.at):
            lab.same(one, other, f"{how}, step {step}", step)
    return refused or None


def _may_refuse(maker: Subject, what: str, step: int) -> str:
    """A refusal is right where the environment says that its snapshots are not portable."""
    if is_portable(maker):
        raise CheckFailedError(f"refused, though the environment says portable: {what}", step=step)
    return f"not portable, and says so when asked: {what}"


def is_portable(subject: Subject) -> bool:
    """Whether the environment says that its snapshots can be restored anywhere."""
    return Stack.of(subject.env).base.fidelity.portable


@check("10-through-a-file", needs=("22",))
def through_a_file(lab: Lab) -> str | None:
    """A snapshot that cannot be written, or comes back changed, is lost with its process."""
    refused = ""
    with tempfile.TemporaryDirectory(prefix="sandboxgym-check-") as folder:
        for case in lab.cases():
            file = Path(folder, "moment.snap")
            case.snapshot.save(file)
            loaded = Snapshot.load(file)
            how = f"a snapshot of step {case.at} after saving and loading"
            lab.same_moment(case.snapshot, loaded, how)
            lab.same(case.snapshot.digest, loaded.digest, f"the digest of {how}", case.at)
            try:
                case.maker.restore(loaded)
            except SnapshotError as error:
                what = f"restored from a file to step {case.at}: {error}"
                refused = _may_refuse(case.maker, what, case.at)
                continue
            lab.continues(case.maker, case, "restored from a file to step")
    return refused or None


@check("11-by-recipe-alone", needs=("22",))
def by_recipe_alone(lab: Lab) -> None:
    """When the captured state is lost, seed, options and actions have to lead back to it."""
    maker = lab.make()
    for case in lab.cases(maker=maker):
        _replays_in_a_fresh_instance(lab, case, "replayed to step")
    for script in lab.in_turn():
        start = lab.case(maker, script, script.moments[0])
        seen = maker.restore(start.snapshot, seed=script.seed + 17)
        way = lab.detour(maker, seen, 1, salt=2)
        reseeded = _case_from_here(lab, maker, way.trace[-1], start.past_actions + way.actions)
        _replays_in_a_fresh_instance(lab, reseeded, "replayed, with a new seed on the way, to step")
    for script in lab.in_turn():
        maker.reset(script.seed)
        maker.reset()
        way = lab.detour(maker, maker.reset(), 2, salt=3)
        unseeded = _case_from_here(lab, maker, way.trace[-1], way.actions)
        _replays_in_a_fresh_instance(lab, unseeded, "replayed from a reset without seed to step")


def _case_from_here(lab: Lab, maker: Subject, seen: Seen, taken: list[Any]) -> Case:
    """A case of the maker's present moment, with a future of the policy's choice."""
    assert lab.doing is not None
    snapshot = maker.snapshot()
    way = lab.detour(maker, seen, 3, salt=4)
    script = Script(lab.doing.seed, taken + way.actions, [])
    return Case(script, len(taken), maker, snapshot, [seen], way.actions, way.trace[1:])


def _replays_in_a_fresh_instance(lab: Lab, case: Case, how: str) -> None:
    lab.doing = case.script
    fresh = lab.make()
    fresh.restore(case.snapshot.drop_state())
    lab.continues(fresh, case, how)


@check("15-after-the-maker-is-closed", needs=("08",))
def after_the_maker_is_closed(lab: Lab) -> None:
    """Episodes end and their environments are closed; the snapshots taken from them live on."""
    for script in lab.in_turn():
        maker = lab.make()
        case = lab.case(maker, script, script.moments[-1])
        maker.close()
        fresh = lab.make()
        fresh.restore(case.snapshot)
        lab.continues(fresh, case, "restored after its maker was closed, to step")
