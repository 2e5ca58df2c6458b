"""Further wrappers of Gymnasium that keep something from step to step, around any environment."""

from __future__ import annotations

from collections.abc import Mapping

from gymnasium.wrappers import FrameStackObservation, StickyAction, TimeAwareObservation, TimeLimit

from sandboxgym.conformance.lab import Around, Lab
from sandboxgym.conformance.source import AnyEnv


def continues_under_wrappers(lab: Lab) -> str:
    """Restore and go on under each stack that the environment's spaces allow; says which."""
    tried, unfit = [], []
    for name, around in _stacks(lab.depth).items():
        if not _fits(lab, around):
            unfit.append(name)
            continue
        tried.append(name)
        _continues_under(lab, name, around)
    lacking = f"; does not take {', '.join(unfit)}" if unfit else ""
    return f"under {', '.join(tried) or 'no further wrapper'}{lacking}"


def _stacks(depth: int) -> Mapping[str, Around]:
    """Wrappers by name, for episodes of some depth."""

    def time_aware(env: AnyEnv) -> AnyEnv:
        return TimeAwareObservation(TimeLimit(env, depth + 1), flatten=False)

    return {
        "FrameStackObservation": lambda env: FrameStackObservation(env, 3),
        "StickyAction": lambda env: StickyAction(env, 0.5),
        "TimeAwareObservation": time_aware,
    }


def _fits(lab: Lab, around: Around) -> bool:
    """Whether the environment can be played inside of a wrapper at all, without any restore.

    Not all spaces can be stacked, and not all actions can be taken twice.
    """
    try:
        subject = lab.make(around)
        for seed in lab.seeds:
            lab.play_episode(subject, seed, lab.depth)
    except Exception:  # noqa: BLE001 - whatever a wrapper makes of spaces that it does not take
        return False
    return True


def _continues_under(lab: Lab, name: str, around: Around) -> None:
    maker, used = lab.make(around), lab.make(around)
    for seed in lab.seeds:
        script = lab.play_episode(maker, seed, lab.depth)
        for at in script.moments:
            case = lab.case(maker, script, at)
            lab.use(used, case)
            for subject, place in ((used, "a used"), (lab.make(around), "a fresh")):
                how = f"under {name}, restored in {place} instance"
                lab.same(case.moment, subject.restore(case.snapshot), f"{how} to step {at}", at)
                lab.continues(subject, case, f"{how}, to step")
