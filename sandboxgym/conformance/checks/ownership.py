"""What an environment hands out belongs to the caller."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sandboxgym.conformance.check import check
from sandboxgym.conformance.lab import Lab, Script
from sandboxgym.conformance.subject import Subject
from sandboxgym.core.plain import owned
from sandboxgym.core.snapshot import Snapshot


@check("20-observations-are-owned", needs=("05", "14"))
def observations_are_owned(lab: Lab) -> None:
    """Agents keep observations and write into them; neither side may find its data changed."""
    keeper, scribbler = lab.make(), lab.make()
    for script in lab.in_turn():
        _kept_results_stay(lab, keeper, script)
        _scribbling_changes_nothing(lab, scribbler, script)
    for case in lab.cases():
        obs, info = case.maker.raw_restore(case.snapshot)
        scribble((obs, info))
        how = "after the results of a restore were written into, step"
        lab.continues(case.maker, case, how)
        seen = case.maker.restore(case.snapshot)
        lab.same(case.moment, seen, f"{how} {case.at}, restored again", case.at)


def _kept_results_stay(lab: Lab, subject: Subject, script: Script) -> None:
    """What was returned early must not change by what happens later."""
    kept: list[Any] = [list(subject.raw_reset(script.seed))]
    copies = [owned(kept[0])]
    for action in script.actions:
        obs, _reward, _terminated, _truncated, info = subject.raw_step(action)
        kept.append([obs, info])
        copies.append(owned(kept[-1]))
    for step, (result, early) in enumerate(zip(kept, copies, strict=True)):
        lab.same(early, owned(result), f"obs and info of step {step}, looked at later", step)


def _scribbling_changes_nothing(lab: Lab, subject: Subject, script: Script) -> None:
    how = "after all earlier observations and infos were written into, step"
    result: Sequence[Any] = subject.raw_reset(script.seed)
    for step, action in enumerate(script.actions, start=1):
        scribble((result[0], result[-1]))
        result = subject.raw_step(action)
        lab.same(script.trace[step], subject.seen(result), f"{how} {step}", step)


def scribble(tree: Any) -> None:
    """Write into everything that can be written into."""
    if isinstance(tree, dict):
        for value in tree.values():
            scribble(value)
        tree.clear()
    elif isinstance(tree, list):
        for value in tree:
            scribble(value)
        tree.clear()
    elif isinstance(tree, tuple):
        for value in tree:
            scribble(value)
    elif isinstance(tree, np.ndarray) and tree.flags.writeable:
        tree[...] = np.zeros((), tree.dtype) if tree.any() else np.ones((), tree.dtype)


@check("21-snapshots-are-owned", needs=("04",))
def snapshots_are_owned(lab: Lab) -> None:
    """A snapshot is a moment of the past; what happens to its environment must not reach it."""
    subject = lab.make()
    for script in lab.in_turn():
        for at in script.moments:
            subject.reset(script.seed)
            subject.play(script.actions[:at])
            snapshot = subject.snapshot()
            before = copy.deepcopy(snapshot)
            subject.play(script.actions[at:])
            _unchanged(lab, snapshot, before, f"a snapshot of step {at}, after stepping on")
            result = subject.raw_restore(snapshot)
            seen = subject.seen(result)
            scribble(result)
            lab.detour(subject, seen, 3, salt=8)
            subject.reset()
            _unchanged(lab, snapshot, before, f"a snapshot of step {at}, after restoring it")


def _unchanged(lab: Lab, snapshot: Snapshot, before: Snapshot, how: str) -> None:
    lab.same_moment(before, snapshot, how)
    digest = replace(snapshot, _digest=None).digest
    lab.same(before.digest, digest, f"the digest of {how}", before.step)
