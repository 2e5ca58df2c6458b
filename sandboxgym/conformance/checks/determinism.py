"""Does the environment play at all, and does it repeat itself?"""

from __future__ import annotations

from sandboxgym.conformance.check import check
from sandboxgym.conformance.lab import Lab, Script
from sandboxgym.conformance.outcome import CheckWarnedError
from sandboxgym.conformance.subject import Subject
from sandboxgym.conformance.worker import play_elsewhere
from sandboxgym.core.digest import first_difference

HASH_SEEDS = (1, 2)


@check("00-plays-and-captures", needs=())
def plays_and_captures(lab: Lab) -> str:
    """All other checks play episodes and take snapshots."""
    lab.record()
    subject = lab.make()
    for script in lab.in_turn():
        subject.reset(script.seed)
        subject.snapshot()
    steps = sum(len(script.actions) for script in lab.scripts)
    return f"recorded {len(lab.scripts)} episodes of {steps} steps together"


@check("01-same-seed-same-episode")
def same_seed_same_episode(lab: Lab) -> None:
    """Results that cannot be repeated cannot be compared, and a replay cannot find its way back."""
    again = lab.make()
    for script in lab.in_turn():
        lab.repeats_episode(again, script, "the same seed in a new instance")
        lab.detour(again, again.reset(script.seed + 1), 2, salt=1)
        lab.repeats_episode(again, script, "the same seed after another episode")


@check("02-same-in-another-process", needs=("01",))
def same_in_another_process(lab: Lab) -> None:
    """Runs resume in new processes; what follows set order, ids or the clock differs there."""
    jobs = [{"seed": script.seed, "actions": script.actions} for script in lab.scripts]
    for hash_seed, traces in zip(HASH_SEEDS, play_elsewhere(lab, jobs, HASH_SEEDS), strict=True):
        for script, trace in zip(lab.in_turn(), traces, strict=True):
            how = f"in a process with PYTHONHASHSEED={hash_seed}"
            for step, (expected, found) in enumerate(zip(script.trace, trace, strict=True)):
                lab.same(expected, found, f"{how}, step {step}", step)


@check("03-seeds-differ", needs=("01",))
def seeds_differ(lab: Lab) -> None:
    """An environment that ignores its seed gives the same episode every time; rarely meant so."""
    script = lab.scripts[0]
    others = lab.seeds[1:] or [script.seed + 1]
    subject = lab.make()
    if not any(_shows_difference(subject, seed, script) for seed in others):
        raise CheckWarnedError(
            f"the seeds {[script.seed, *others]} give the same episode for the same actions: does "
            "reset pass its seed to super().reset(seed=seed) and use self.np_random?"
        )


def _shows_difference(subject: Subject, seed: int, script: Script) -> bool:
    if first_difference(script.trace[0], subject.reset(seed)):
        return True
    return any(
        first_difference(expected, subject.step(action))
        for action, expected in zip(script.actions, script.trace[1:], strict=True)
    )
