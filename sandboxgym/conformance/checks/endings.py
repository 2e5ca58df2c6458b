"""How episodes end: counters of wrappers, and what comes after the end."""

from __future__ import annotations

from typing import Any

from sandboxgym.conformance.check import check
from sandboxgym.conformance.lab import Around, Lab, Script, limited_to
from sandboxgym.conformance.stacks import continues_under_wrappers
from sandboxgym.conformance.subject import Subject, ended
from sandboxgym.core.errors import SandboxGymError


@check("17-wrapper-counters", needs=("05", "08", "14"))
def wrapper_counters(lab: Lab) -> str:
    """A counter that stays behind in a wrapper ends the restored episode at another step."""
    natural = lab.long_episode()
    if ended(natural.trace[-1]):
        _ends_at_the_same_step(lab, natural)
    limit = limited_to(max(1, len(natural.actions) - 1))
    _ends_at_the_same_step(lab, lab.long_episode(limit), limit)
    stacks = continues_under_wrappers(lab)
    if ended(natural.trace[-1]):
        return stacks
    return f"{stacks}; no episode ended by itself within {len(natural.actions)} steps"


def _ends_at_the_same_step(lab: Lab, script: Script, limit: Around | None = None) -> None:
    """Restore shortly after the start and shortly before the end, into differently used ones."""
    last = len(script.actions)
    lab.doing = script
    maker = lab.make(limit)
    for at in sorted({min(1, last - 1), last // 2, last - 1}):
        case = lab.case(maker, script, at)
        used, fresh = lab.make(limit), lab.make(limit)
        lab.use(used, case)
        for subject, place in ((used, "a used"), (fresh, "a fresh")):
            subject.restore(case.snapshot)
            for step, action in enumerate(case.rest, start=at + 1):
                seen = subject.step(action)
                how = f"restored to step {at} in {place} instance, the end of step {step}"
                lab.same(_ending(case.future[step - at - 1]), _ending(seen), how, step)


def _ending(seen: dict[str, Any]) -> dict[str, bool]:
    """The two flags of a step."""
    return {name: bool(seen[name]) for name in ("terminated", "truncated")}


@check("18-ended-episodes", needs=("05", "17", "22"))
def ended_episodes(lab: Lab) -> str | None:
    """The end of an episode is a moment like any other: restored to, and restored from."""
    natural = lab.long_episode()
    if ended(natural.trace[-1]):
        _restores_around_the_end(lab, natural)
        return None
    limit = limited_to(min(lab.depth, len(natural.actions)))
    _restores_around_the_end(lab, lab.long_episode(limit), limit)
    return f"no episode ended within {len(natural.actions)} steps; cut short by a TimeLimit"


def _restores_around_the_end(lab: Lab, script: Script, limit: Around | None = None) -> None:
    lab.doing = script
    last = len(script.actions)
    maker, fresh = lab.make(limit), lab.make(limit)
    case = lab.case(maker, script, last // 2)
    end = maker.snapshot()
    digest = maker.digest()
    beyond = _attempt(maker, script.actions[-1])
    maker.restore(case.snapshot)
    lab.continues(maker, case, "restored from the end of the episode back to step")
    for subject, place in ((maker, "its maker"), (fresh, "a fresh instance")):
        how = f"restored to the end of the episode in {place}"
        seen = subject.restore(end)
        lab.same(case.future[-1]["obs"], seen["obs"], f"{how}: the observation", last)
        lab.same(case.future[-1]["info"], seen["info"], f"{how}: the info", last)
        lab.same(digest, subject.digest(), f"{how}: the digest", last)
        lab.same(beyond, _attempt(subject, script.actions[-1]), f"{how}: a step beyond it", last)
        lab.repeats_episode(subject, script, f"{how}, then reset")


def _attempt(subject: Subject, action: Any) -> Any:
    """What a step after the end gives: most environments refuse it."""
    try:
        return subject.step(action)
    except SandboxGymError as error:
        return type(error).__name__
