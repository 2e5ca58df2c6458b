"""Which runs the learning curves are made of: methods, their tuning, their seeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.learning_worlds import WORLDS
from sandboxgym_learners.jobs import Job, Setting
from sandboxgym_learners.report.curves import area_under
from sandboxgym_learners.report.load import Run, load_run

TUNING_SEED = 1000
START_SEED = 2000


@dataclass(frozen=True)
class Method:
    """What tells a method from the others; all else is the same for all.

    Attributes:
        settings: Options of the training.
        rate: What the learning rates of a world are multiplied with.
    """

    settings: Mapping[str, Setting]
    rate: float = 1.0


_BPO: dict[str, Setting] = {
    "algo": "bpo",
    "tree.roots": 4,
    "tree.siblings": 3,
    "tree.quantile": 0.9,
    "credit.mix": 0.7,
}

METHODS = {
    "bpo": Method(_BPO),
    "bpo-2x8": Method({**_BPO, "tree.roots": 2, "tree.siblings": 8}),
    "bpo-adaptive": Method({**_BPO, "tree.branching": "adaptive"}),
    "rloo": Method({"algo": "rloo", "tree.roots": 8}),
    "grpo": Method({"algo": "grpo", "tree.roots": 8}),
    "vineppo": Method({"algo": "vineppo"}),
    "ppo": Method(
        {
            "algo": "ppo",
            "tree.roots": 6,
            "learning.epochs": 2,
            "learning.minibatches": 3,
            "critic.epochs": 2,
        },
        rate=0.4,  # it takes six steps an update, the others one
    ),
}


@dataclass(frozen=True)
class Study:
    """Which runs there are, and where they lie."""

    out: Path
    worlds: Sequence[str]
    methods: Sequence[str]
    rates: Sequence[float] | None
    seeds: int
    compute: float | None

    def rates_of(self, world: str, method: str) -> Sequence[float]:
        """The learning rates that a method is tuned over in a world, as many for every method."""
        return self.rates or [METHODS[method].rate * rate for rate in WORLDS[world].rates]

    def start(self, world: str) -> Job:
        """The run without an update that makes the policy which all others in a world start from.

        Policies that start apart stay further apart than methods move them.
        """
        settings: dict[str, Setting] = {**WORLDS[world].settings, "algo": "rloo"}
        return Job(f"{world} start", self.out / world / "start", START_SEED, 0.0, settings)

    def job(self, world: str, method: str, rate: float, seed: int) -> Job:
        """One training run."""
        settings = {
            **WORLDS[world].settings,
            **METHODS[method].settings,
            "learning.rate": rate,
            "start": str(self.start(world).folder / "start"),
        }
        return Job(
            name=f"{world} {method} {rate:g}",
            folder=self.out / world / method / f"rate-{rate:g}" / f"seed-{seed}",
            seed=seed,
            budget=self.compute or WORLDS[world].compute,
            settings=settings,
        )

    def tuning(self) -> list[Job]:
        """The runs that learning rates are chosen by."""
        return [
            self.job(world, method, rate, TUNING_SEED)
            for world in self.worlds
            for method in self.methods
            for rate in self.rates_of(world, method)
        ]

    def tuned_in(self, world: str) -> Study:
        """The part of the study that is about one world and the methods that are tuned there."""
        alone = replace(self, worlds=[world])
        tuned = [
            method
            for method in self.methods
            if all(job.finished() for job in replace(alone, methods=[method]).tuning())
        ]
        return replace(alone, methods=tuned)

    def best_rate(self, world: str, method: str) -> float:
        """The rate whose tuning run has the largest area under its success curve."""
        return max(
            self.rates_of(world, method), key=lambda rate: self.tuned_area(world, method, rate)
        )

    def tuned_area(self, world: str, method: str, rate: float) -> float:
        """Mean success of a tuning run over its compute."""
        return area(load_run(self.job(world, method, rate, TUNING_SEED).folder))

    def rounds(self) -> Iterator[list[Job]]:
        """The runs that are compared, one seed of everything at a time."""
        tuned = [
            (world, method, self.best_rate(world, method))
            for world in self.worlds
            for method in self.methods
        ]
        for seed in range(self.seeds):
            yield [self.job(world, method, rate, seed) for world, method, rate in tuned]


def area(run: Run) -> float:
    """Mean success over the compute of a run."""
    return area_under(run.points("eval_success"), end=run.budget)
