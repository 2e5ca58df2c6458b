"""The loop: collect trees, give credit, learn, write down; the same for every algorithm.

One update is: draw tasks, collect a tree for each, let the estimator credit every decision, take
the gradient steps, let all that runs along learn from the trees it saw (the branch rule, the
analysis of variance, the shape of the next trees, the critic), write everything down. Algorithms
differ in nothing but their entry in `algorithms.ALGORITHMS`.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from tqdm import tqdm  # type: ignore[import-untyped]

from sandboxgym.core.errors import SandboxGymError
from sandboxgym.core.version import __version__
from sandboxgym_learners import checkpoint, trackers
from sandboxgym_learners.adaptive import AdaptiveShape
from sandboxgym_learners.advantages import standardise
from sandboxgym_learners.algorithms import Shape
from sandboxgym_learners.anova import NestedAnova
from sandboxgym_learners.branching import make_rule
from sandboxgym_learners.collect import Collector, Costs
from sandboxgym_learners.config import TrainConfig
from sandboxgym_learners.critic import Critic
from sandboxgym_learners.divergence import EntropyWatch
from sandboxgym_learners.efficiency import efficiency
from sandboxgym_learners.learning import GradientStatistics, Learner
from sandboxgym_learners.policy import Policy
from sandboxgym_learners.prompts import task_of
from sandboxgym_learners.runlog import RunLog, has_rows, saved_config, write_config
from sandboxgym_learners.starting import load_policy, starting_policy
from sandboxgym_learners.summary import describe, episode_steps
from sandboxgym_learners.tree import Group
from sandboxgym_learners.updates import Timing, Update
from sandboxgym_learners.worlds import TextEnv


class SandboxFailedError(SandboxGymError, RuntimeError):
    """An environment failed while trees were collected; the update is lost, nothing else is."""


class Trainer:
    """A training run: what changes from update to update, and the loop that changes it."""

    def __init__(self, config: TrainConfig) -> None:
        """Prepare a run, or go on with the one in `config.out`."""
        torch.set_num_threads(config.threads)
        torch.use_deterministic_algorithms(True)
        self.config = config
        self.estimator = config.algorithm.credit(config.credit)
        self.update = 0
        self.best = -1.0
        self.rule = make_rule(config.tree, seed=config.seed)
        self.anova = NestedAnova()
        self.adaptive = (
            AdaptiveShape(config.adaptive, config.shape)
            if config.tree.branching == "adaptive"
            else None
        )
        self.watch = EntropyWatch(config.stop)
        described = {"config": config.to_dict(), "versions": _versions()}
        trackers.check(config.trackers)
        saved, begun = saved_config(config.out), has_rows(config.out)
        if config.resume and saved is not None and begun:
            checkpoint.refuse_other_configuration(saved, config)
        if config.resume and checkpoint.has_checkpoint(config.out):
            state = checkpoint.load_checkpoint(config)
            self.log = RunLog.resume(
                config.out, last_update=state["update"], tensorboard=config.tensorboard
            )
            write_config(config.out, described)  # its budget may be another one
            self.trackers = self._started_trackers()
            self._build(self._saved_start())
            self._load(state)
        else:
            self.log = RunLog.create(
                config.out,
                described,
                tensorboard=config.tensorboard,
                restart=config.resume or not begun,
            )
            self.trackers = self._started_trackers()
            self._start()

    def run(self) -> None:
        """Update until the budget is spent.

        Raises:
            DivergenceError: There is no point in going on; the message says what to change.
            SandboxFailedError: An environment failed.
        """
        policy = self.config.out / "policy"
        if policy.exists() and self.compute < self.config.budget:
            shutil.rmtree(policy)  # a finished run goes on, with a larger budget
        with (
            self.log,
            closing(self.collector),
            closing(self.evaluator),
            closing(self.trackers),
            self._progress() as progress,
        ):
            while self.compute < self.config.budget:
                update, timing, trees = self._one_update()
                self._record(update, timing, trees)
                progress.update(min(self.compute, self.config.budget) - progress.n)
                progress.set_postfix(_postfix(update))
                self.watch.end_update(entropy=update.entropy, success=update.success)
            if not policy.exists():
                _save(self.policy, policy)

    def _started_trackers(self) -> trackers.Trackers:
        config = self.config
        return trackers.Trackers(config.trackers, config.out, config.to_dict())

    @property
    def compute(self) -> float:
        """What was spent, in units of one environment step."""
        return self._price(self.collector.costs)

    def _start(self) -> None:
        """Make the policy that training starts from, and evaluate it."""
        begin = time.perf_counter()
        policy = starting_policy(self.config)
        made = time.perf_counter()
        _save(policy, self.config.out / "start")
        self._build(policy)
        success, steps = self._evaluate()
        end = time.perf_counter()
        self._record(
            Update(update=0, eval_success=success, eval_steps=steps),
            Timing(0, end - begin, 0.0, 0.0, 0.0, made - begin, end - made),
            trees=[],
        )

    def _build(self, policy: Policy) -> None:
        """Make everything that works with the policy, which must be the one of the start."""
        config = self.config
        reference = self._saved_start() if config.learning.kl else None
        self.policy = policy
        self.critic = (
            Critic(policy, config.critic, seed=config.seed) if config.algorithm.critic else None
        )
        self.learner = Learner(
            policy, config.learning, config.schedule, reference=reference, seed=config.seed
        )
        self.collector = self._collector(policy, config.world.make_train)
        self.evaluator = self._collector(policy, config.world.make_held_out)

    def _saved_start(self) -> Policy:
        """The policy before the first update, as this run has saved it."""
        config = self.config
        return load_policy(config.out / "start", config.policy, config.world.face.style)

    def _collector(self, policy: Policy, make: Callable[[], TextEnv]) -> Collector:
        return Collector.in_world(policy, self.config.world, make, self.config.prompt)

    def _one_update(self) -> tuple[Update, Timing, list[Group]]:
        costs = self.collector.costs
        before, begin = Costs(**asdict(costs)), time.perf_counter()
        self.update += 1
        shape = self.config.shape if self.adaptive is None else self.adaptive.shape
        threshold = getattr(self.rule, "threshold", None)
        trees = self._collect(shape)
        collected = time.perf_counter()
        gradient, explained = self._learn(trees)
        learned = time.perf_counter()
        success, steps = self._evaluate() if self._evaluates_now() else (None, None)
        end = time.perf_counter()
        update = Update(
            update=self.update,
            **self._totals(),
            **describe(trees),
            roots=shape.roots,
            siblings=shape.siblings if shape.branches else None,
            max_branches=shape.max_branches,
            threshold=threshold if shape.branches else None,
            **self._prospects(shape),
            grad_norm=gradient.norm,
            grad_variance=gradient.variance,
            grad_cost=(self.compute - self._price(before)) / len(trees),
            value_explained=explained,
            eval_success=success,
            eval_steps=steps,
        )
        timing = Timing(
            update=self.update,
            wall_s=end - begin,
            policy_s=costs.policy_s - before.policy_s,
            env_s=costs.env_s - before.env_s,
            restore_s=costs.restore_s - before.restore_s,
            learn_s=learned - collected,
            eval_s=end - learned,
        )
        return update, timing, trees

    def _collect(self, shape: Shape) -> list[Group]:
        self.rule.max_branches = shape.max_branches
        try:
            return self.collector.collect(
                self._tasks(),
                roots=shape.roots,
                siblings=shape.siblings,
                rule=self.rule if shape.branches else None,
                seed=(self.config.seed, self.update),
            )
        except Exception as error:  # an environment may raise anything
            raise SandboxFailedError(
                f"update {self.update} could not be collected from {self.config.world.env} "
                f"({type(error).__name__}: {error})"
            ) from error

    def _learn(self, trees: Sequence[Group]) -> tuple[GradientStatistics, float | None]:
        """Give credit and take the steps; what runs along learns for the next update."""
        explained = None
        if self.critic is not None:
            self.critic.value(trees)
        for tree in trees:
            self.estimator(tree)
        if self.critic is not None:
            explained = self.critic.learn(trees)
            if self.config.credit.standardise:
                standardise(trees)
        gradient = self.learner.update(trees)
        self.rule.end_update(trees)
        self.anova.end_update(trees)
        if self.adaptive is not None:
            self.adaptive.end_update(self.anova.known)
        return gradient, explained

    def _tasks(self) -> list[int]:
        """The tasks of this update, the same for every algorithm."""
        number, wanted = self.config.world.train_tasks, self.config.tree.per_update
        dice = np.random.default_rng((self.config.seed, self.update))
        drawn: list[int] = dice.choice(number, wanted, replace=wanted > number).tolist()
        return drawn

    def _evaluates_now(self) -> bool:
        return self.update % self.config.eval_every == 0 or self.compute >= self.config.budget

    def _evaluate(self) -> tuple[float, float | None]:
        """Success and length of episodes on the held-out tasks, with the same draws every time."""
        world = self.config.world
        trees = self.evaluator.collect(
            range(world.eval_tasks), roots=world.eval_episodes, seed=(self.config.seed, 0)
        )
        return sum(tree.success_rate() for tree in trees) / len(trees), episode_steps(trees)

    def _totals(self) -> dict[str, Any]:
        costs = self.collector.costs
        return {
            "compute": self.compute,
            "env_steps": costs.env_steps,
            "generated_tokens": costs.generated_tokens,
            "forward_tokens": costs.forward_tokens,
            "returns": costs.returns,
            "restores": costs.restores,
        }

    def _price(self, costs: Costs) -> float:
        return costs.env_steps + self.config.token_price * costs.generated_tokens

    def _prospects(self, shape: Shape) -> dict[str, Any]:
        """What the trees so far say of branching, in this shape or in the configured one."""
        known, shape = self.anova.known, shape if shape.branches else self.config.shape
        if known is None:
            return {}
        predicted = None
        if shape.max_branches == 1 and shape.roots > 1:
            predicted = efficiency(known, shape, episodes=shape.roots * shape.siblings)
        return {
            "eta": known.eta,
            "remaining": known.remaining,
            "predicted_efficiency": predicted,
        }

    def _record(self, update: Update, timing: Timing, trees: Sequence[Group]) -> None:
        """Write the rows first, then the checkpoint: a resumed run cuts rows, never misses one."""
        config = self.config
        self.log.write(update, timing)
        if trees and self.update % config.tree_every == 0:
            first = next(trees[0].steps())
            self.log.write_tree(
                self.update, algo=config.algo, task=task_of(first.prompt), tree=trees[0]
            )
        if update.eval_success is not None and update.eval_success > self.best:
            self.best = update.eval_success
            _save(self.policy, config.out / "best", update=self.update, eval_success=self.best)
        if self.update % config.checkpoint_every == 0 or self.compute >= config.budget:
            checkpoint.save_checkpoint(config, self._state())
        self.trackers.log(self.update, asdict(update))

    def _state(self) -> dict[str, Any]:
        return {
            "update": self.update,
            "best": self.best,
            "costs": asdict(self.collector.costs),
            **{name: part.state_dict() for name, part in self._parts().items()},
        }

    def _load(self, state: dict[str, Any]) -> None:
        self.update, self.best = state["update"], state["best"]
        self.collector.costs = Costs(**state["costs"])
        for name, part in self._parts().items():
            part.load_state_dict(state[name])

    def _parts(self) -> dict[str, Any]:
        """All that learns from update to update."""
        parts = {
            "learner": self.learner,
            "critic": self.critic,
            "rule": self.rule,
            "anova": self.anova,
            "adaptive": self.adaptive,
            "watch": self.watch,
        }
        return {name: part for name, part in parts.items() if part is not None}

    def _progress(self) -> Any:
        return tqdm(
            total=self.config.budget,
            initial=min(self.compute, self.config.budget),
            desc=f"{self.config.algo} seed {self.config.seed}",
            unit="step",
            bar_format="{desc} {percentage:3.0f}% |{bar}| {elapsed}<{remaining}{postfix}",
            disable=None,
        )


def _save(policy: Policy, folder: Path, **about: float) -> None:
    """Write a policy beside its place and move it there, so that what is there is whole."""
    unfinished = folder.with_name(f"{folder.name}.tmp")
    if unfinished.exists():
        shutil.rmtree(unfinished)
    try:
        policy.save(unfinished)
    except SafetensorError as error:
        raise OSError(f"{unfinished} cannot be written: {error}") from error
    if about:
        (unfinished / "evaluation.json").write_text(json.dumps(about) + "\n", encoding="utf-8")
    if folder.exists():
        shutil.rmtree(folder)
    unfinished.rename(folder)


def _versions() -> dict[str, str]:
    import transformers

    return {
        "sandboxgym": __version__,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "numpy": np.__version__,
    }


def _postfix(update: Update) -> dict[str, str]:
    shown = {"update": str(update.update), "success": f"{update.success:.2f}"}
    if update.eval_success is not None:
        shown["held out"] = f"{update.eval_success:.2f}"
    return shown
