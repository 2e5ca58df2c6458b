"""Learning curves at matched compute: BPO, fixed and adaptive, against RLOO, GRPO, PPO and VinePPO.

    python -m benchmarks.learning --budget 120 --out benchmarks/out/learning --results docs/results

All runs in a world start from one policy, made first, and have the same budget of compute:
environment steps, and generated tokens at their price. Then every method is tuned: as many learning
rates, one run each, with a seed that is used for nothing else; the rate with the largest area under
its success curve is taken. Then seeds are trained in rounds, so that all methods have the same
number whenever it stops. What the first seed of each method learned is played on tasks that it has
not seen as well, those of ALFWorld's `valid_seen` where `--games-dir` says where they are.

The budget in minutes ends what runs; the same command goes on from there. What is finished is read
from the run directories, and written down with the commit, the command and the machine: numbers and
pictures in `--results` (pictures need matplotlib), a page with every tree in `--out`.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shlex
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from benchmarks import learning_plot
from benchmarks.learning_study import METHODS, Study, area
from benchmarks.learning_table import table
from benchmarks.learning_worlds import WORLDS, Unseen
from sandboxgym_learners.evaluate import EvaluateConfig, evaluate
from sandboxgym_learners.jobs import end_like_an_interrupt, train_all
from sandboxgym_learners.report import write_report
from sandboxgym_learners.report.curves import Interval, band, interval
from sandboxgym_learners.report.load import Run, load_run
from sandboxgym_learners.report.provenance import commit, machine
from sandboxgym_learners.report.results import variance_times_cost


def train(study: Study, *, minutes: float, at_once: int) -> bool:
    """Train what is not finished, until it is or the time is up; whether it is."""
    deadline = time.monotonic() + 60 * minutes
    starts = [study.start(world) for world in study.worlds]
    if not train_all(starts, at_once=at_once, deadline=deadline):
        return False
    if not train_all(study.tuning(), at_once=at_once, deadline=deadline):
        return False
    return all(train_all(jobs, at_once=at_once, deadline=deadline) for jobs in study.rounds())


def compared(study: Study, world: str) -> dict[str, list[Run]]:
    """The finished runs of every method in a world: those of the seeds that all methods have."""
    found = {method: finished(study, world, method) for method in study.methods}
    seeds = [{run.seed for run in runs} for runs in found.values()]
    common = set.intersection(*seeds) if seeds else set()
    return {method: [r for r in runs if r.seed in common] for method, runs in found.items()}


def finished(study: Study, world: str, method: str) -> list[Run]:
    """The finished runs of a method, named after it."""
    rate = study.best_rate(world, method)
    jobs = [study.job(world, method, rate, seed) for seed in range(study.seeds)]
    return [replace(load_run(job.folder), algo=method) for job in jobs if job.finished()]


def summary(study: Study, world: str, groups: Mapping[str, Sequence[Run]]) -> dict[str, Any]:
    """The numbers of the table for one world."""
    rows = {method: row(runs) for method, runs in groups.items()}
    free = [method for method in ("rloo", "grpo") if method in rows]
    if free:
        goal = max(rows[method]["final"]["mean"] for method in free)
        for method, runs in groups.items():
            reached = compute_to(runs, goal)
            rows[method]["updates_to_best_critic_free_final"] = updates_by(runs, reached)
            rows[method]["compute_to_best_critic_free_final"] = reached
    if "rloo" in rows:
        for method, runs in groups.items():
            rows[method]["final_over_rloo"] = asdict(over(runs, groups["rloo"]))
    return {
        "describes": WORLDS[world].describes,
        "compute": study.compute or WORLDS[world].compute,
        "rates": {method: study.best_rate(world, method) for method in groups},
        "tuning": {
            method: {
                f"{rate:g}": study.tuned_area(world, method, rate)
                for rate in study.rates_of(world, method)
            }
            for method in groups
        },
        "methods": rows,
    }


def row(runs: Sequence[Run]) -> dict[str, Any]:
    """One method in one world; intervals hold 90 % of Student's t over seeds."""
    curves = [run.points("eval_success") for run in runs]
    products = [statistics.fmean(known) for run in runs if (known := variance_times_cost(run))]
    return {
        "seeds": [run.seed for run in runs],
        "start": asdict(interval([curve.y[0] for curve in curves])),
        "final": asdict(interval([final(run) for run in runs])),
        "area": asdict(interval([area(run) for run in runs])),
        "updates": statistics.fmean(run.updates[-1].update for run in runs),
        "gradient_variance_times_cost": asdict(interval(products)) if products else None,
    }


def over(runs: Sequence[Run], others: Sequence[Run]) -> Interval:
    """How much more success runs end with than others with the same seeds, so the same tasks."""
    ends = {run.seed: final(run) for run in others}
    return interval([final(run) - ends[run.seed] for run in runs])


def on_unseen(folder: Path, unseen: Unseen, games_dir: Path | None) -> dict[str, Any] | None:
    """What the policy of a run is worth on other tasks; kept in its directory.

    None where they need data that is not given.
    """
    if unseen.real and games_dir is None:
        return None
    kept = folder / "unseen.json"
    if not kept.is_file():
        data = (*unseen.arguments, *([f"games_dir={games_dir}"] if unseen.real else []))
        config = EvaluateConfig(folder, arguments=data, tasks=unseen.tasks, horizon=unseen.horizon)
        kept.write_text(json.dumps(asdict(evaluate(config))), "utf-8")
    known: dict[str, Any] = json.loads(kept.read_text("utf-8"))
    return known


def final(run: Run) -> float:
    """Success at the end: the mean of the last three evaluations, since one is noisy."""
    return statistics.fmean(run.points("eval_success").y[-3:])


def updates_by(runs: Sequence[Run], compute: float | None) -> float | None:
    """Mean number of updates that runs had made for so much compute; None for None."""
    if compute is None:
        return None
    return statistics.fmean(
        max((row.update for row in run.updates if row.compute <= compute), default=0)
        for run in runs
    )


def compute_to(runs: Sequence[Run], goal: float) -> float | None:
    """Compute at which the mean curve over seeds first reaches a success; None if never."""
    mean = band([run.points("eval_success").smoothed(3) for run in runs])
    if mean is None:
        return None
    return next((x for x, y in zip(mean.x, mean.mean, strict=True) if y >= goal), None)


def add_unseen(
    study: Study,
    world: str,
    groups: Mapping[str, Sequence[Run]],
    found: dict[str, Any],
    games_dir: Path | None,
) -> None:
    """Add what the start, and the first seed of every method, is worth on other tasks."""
    unseen = WORLDS[world].unseen
    found["unseen"] = {
        "name": unseen.name,
        "start": on_unseen(study.start(world).folder, unseen, games_dir),
    }
    for method, runs in groups.items():
        found["methods"][method]["unseen"] = on_unseen(runs[0].folder, unseen, games_dir)


def write(study: Study, results: Path, command: str, games_dir: Path | None = None) -> bool:
    """Write down what is finished; whether anything is."""
    worlds = {}
    for world in study.worlds:
        groups = compared(study.tuned_in(world), world)
        if groups and all(groups.values()):
            worlds[world] = summary(study, world, groups)
            add_unseen(study, world, groups, worlds[world], games_dir)
            runs = [run for each in groups.values() for run in each]
            write_report(runs, study.out / f"report-{world}", command=command)
            title = WORLDS[world].describes
            learning_plot.draw(groups, title, results / f"learning-{world}.png")
            worlds[world]["plot"] = f"learning-{world}.png"
    if not worlds:
        return False
    found = {
        "made": {"command": command, "commit": commit(), "machine": machine()},
        "worlds": worlds,
    }
    results.mkdir(parents=True, exist_ok=True)
    (results / "learning.json").write_text(json.dumps(found, indent=2) + "\n", "utf-8")
    (results / "learning.md").write_text("# Learning curves\n\n" + table(found), "utf-8")
    return True


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--budget", type=float, default=120.0, help="minutes, after which it stops")
    parser.add_argument("--compute", type=float, help="of each run, instead of the world's own")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/out/learning"))
    parser.add_argument("--results", type=Path, default=Path("docs/results"))
    parser.add_argument("--worlds", nargs="+", choices=list(WORLDS), default=list(WORLDS))
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--rates", nargs="+", type=float, help="instead of each method's own")
    parser.add_argument(
        "--games-dir", type=Path, help="ALFWorld's data, to play valid_seen as well"
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--at-once", type=int, default=2, help="runs at the same time")
    if importlib.util.find_spec("matplotlib") is None:
        parser.error("its pictures need matplotlib: pip install matplotlib")
    return parser.parse_args(given)


def main() -> int:
    """Train, and write down what is finished."""
    args = arguments()
    study = Study(args.out, args.worlds, args.methods, args.rates, args.seeds, args.compute)
    complete = train(study, minutes=args.budget, at_once=args.at_once)
    command = shlex.join(["python", "-m", "benchmarks.learning", *sys.argv[1:]])
    if not write(study, args.results, command, args.games_dir):
        print("no world has a seed of every method yet: the same command goes on from here")
    elif not complete:
        print(f"the time is up: {args.results} has what is finished, the same command goes on")
    return 0


if __name__ == "__main__":
    end_like_an_interrupt()
    raise SystemExit(main())
