"""What is known of every update of a run: a row of numbers, and a row of seconds.

`runlog` writes them; here they are read back, while a run goes on or after.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from sandboxgym_learners.runlock import RunDirectoryError


@dataclass(frozen=True, slots=True)
class Update:
    """A row of `updates.csv`. Counts of cost are totals since the start of the run.

    Evaluations count towards no total.

    Attributes:
        update: Number of the update, from 1; 0 is the policy before the first one.
        compute: What was spent, in units of one environment step: the environment steps, plus the
            generated tokens at the price of the configuration. What a budget limits.
        env_steps: Environment steps, each one decision of the policy; a shared prefix counts once.
        generated_tokens: Tokens of the actions that were taken.
        forward_tokens: Tokens that went through the model to decide these actions.
        returns: Finished episodes.
        restores: Snapshots that were restored.
        success: This update's estimate of the success of the policy that collected.
        mean_return: The same for its return.
        episode_steps: Mean number of decisions of an episode, from the reset.
        entropy: Mean entropy of a decision in nats, decisions counted by path weight.
        roots: B, independent episodes of each task in this update.
        siblings: K, members of the groups below; None where this update did not branch.
        max_branches: M, branch points that a backbone could have; 0 where it did not branch.
        threshold: The entropy at which this update branched.
        branch_points: How many groups below the root were opened.
        same_action_share: Of these, the share whose members all started with the same action.
        constant_share: Of all groups, roots included, the share whose members have the same mean
            return, so that none of them is credited.
        eta: η, running share of the variance of returns that the history at a branch point
            explains.
        remaining: f, running share of an episode's steps that comes after its first branch point.
        predicted_efficiency: Variance times cost of the tree, relative to independent episodes, as
            predicted from running estimates; below 1 branching pays. Only for trees with one
            branch point a backbone.
        grad_norm: Norm of the gradient of the first step, before clipping.
        grad_variance: Trace of the covariance of a single tree's gradient, between the trees; not
            known where steps are taken on minibatches.
        grad_cost: Mean compute of a tree; variance times this compares estimators at equal cost.
        value_explained: Of the variance of the returns in this update, the share that the critic's
            values had explained.
        eval_success: Success on held-out tasks, where this update was evaluated.
        eval_steps: Mean number of decisions of an episode there.
    """

    update: int
    compute: float = 0.0
    env_steps: int = 0
    generated_tokens: int = 0
    forward_tokens: int = 0
    returns: int = 0
    restores: int = 0
    success: float | None = None
    mean_return: float | None = None
    episode_steps: float | None = None
    entropy: float | None = None
    roots: int | None = None
    siblings: int | None = None
    max_branches: int | None = None
    threshold: float | None = None
    branch_points: int | None = None
    same_action_share: float | None = None
    constant_share: float | None = None
    eta: float | None = None
    remaining: float | None = None
    predicted_efficiency: float | None = None
    grad_norm: float | None = None
    grad_variance: float | None = None
    grad_cost: float | None = None
    value_explained: float | None = None
    eval_success: float | None = None
    eval_steps: float | None = None


@dataclass(frozen=True, slots=True)
class Timing:
    """A row of `timings.csv`: where the seconds of one update went.

    Attributes:
        update: Number of the update; row 0 is the warm start and the first evaluation.
        wall_s: The whole update, evaluation included.
        policy_s: Of it, scoring actions while collecting.
        env_s: Resets and steps of environments while collecting.
        restore_s: Snapshots and restores while collecting.
        learn_s: Gradients and optimiser steps; in row 0 the behaviour cloning.
        eval_s: Evaluation.
    """

    update: int
    wall_s: float
    policy_s: float
    env_s: float
    restore_s: float
    learn_s: float
    eval_s: float


Row = TypeVar("Row", Update, Timing)


def read_updates(folder: Path) -> list[Update]:
    """The rows of `updates.csv`.

    Raises:
        RunDirectoryError: There is no such file, or it has other columns.
    """
    return _read(folder / "updates.csv", Update)


def read_timings(folder: Path) -> list[Timing]:
    """The rows of `timings.csv`; raises like `read_updates`."""
    return _read(folder / "timings.csv", Timing)


def _read(path: Path, row: type[Row]) -> list[Row]:
    if not path.is_file():
        raise RunDirectoryError(f"{path} is missing: is {path.parent} the directory of a run?")
    whole = path.read_text("utf-8").rpartition("\n")[0]  # a killed run may end within a row
    reader = csv.DictReader(whole.splitlines())
    names = [field.name for field in fields(row)]
    if reader.fieldnames != names:
        raise RunDirectoryError(
            f"{path} has the columns {reader.fieldnames}, not {names}: read it with the release "
            "that wrote it"
        )
    try:
        return [row(**{name: _number(text) for name, text in line.items()}) for line in reader]
    except (AttributeError, TypeError, ValueError) as error:
        raise RunDirectoryError(f"{path} has a row that is none of ours ({error})") from error


def _number(text: str) -> Any:
    if text == "":
        return None
    return int(text) if text.lstrip("-").isdecimal() else float(text)
