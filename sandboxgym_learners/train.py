"""`python -m sandboxgym_learners.train`: train a policy on rollout trees, from a warm start.

One update is: draw tasks, collect a tree for each, let the estimator credit every decision, take
the gradient steps, let the branch rule learn from the entropies it saw, write everything down. BPO,
RLOO and GRPO differ in nothing but their entry in `config.ALGORITHMS`.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
import tyro
from tqdm import tqdm  # type: ignore[import-untyped]
from transformers.utils.logging import disable_progress_bar

from sandboxgym.core.errors import SandboxGymError
from sandboxgym.core.version import __version__
from sandboxgym_learners import checkpoint
from sandboxgym_learners.anova import NestedAnova
from sandboxgym_learners.branching import EntropyTrigger
from sandboxgym_learners.cloning import clone
from sandboxgym_learners.collect import Collector, Costs
from sandboxgym_learners.config import TrainConfig
from sandboxgym_learners.learning import Learner
from sandboxgym_learners.policy import Policy
from sandboxgym_learners.prompts import task_of
from sandboxgym_learners.runlog import RunLog, Timing, Update, saved_config, write_config
from sandboxgym_learners.summary import describe, episode_steps
from sandboxgym_learners.tree import Group
from sandboxgym_learners.worlds import demonstrations, sample_texts


class Trainer:
    """A training run: what changes from update to update, and the loop that changes it."""

    def __init__(self, config: TrainConfig) -> None:
        """Prepare a run, or go on with the one in `config.out`."""
        torch.set_num_threads(config.threads)
        torch.use_deterministic_algorithms(True)
        self.config = config
        self.update = 0
        self.trigger = EntropyTrigger(
            max_branches=config.tree.max_branches,
            spacing=config.tree.spacing,
            quantile=config.tree.quantile,
            smoothing=config.tree.smoothing,
        )
        self.anova = NestedAnova()
        described = {"config": config.to_dict(), "versions": _versions()}
        saved = saved_config(config.out)
        if config.resume and saved is not None:
            checkpoint.refuse_other_configuration(saved, config)
        if config.resume and checkpoint.has_checkpoint(config.out):
            state = checkpoint.load_checkpoint(config)
            self.log = RunLog.resume(
                config.out, last_update=state["update"], tensorboard=config.tensorboard
            )
            write_config(config.out, described)  # its budget may be another one
            self._build(Policy.load(config.out / "start"))
            self._load(state)
        else:
            self.log = RunLog.create(
                config.out,
                described,
                tensorboard=config.tensorboard,
                restart=config.resume,
            )
            self._start()

    def run(self) -> None:
        """Update until the budget is spent."""
        policy = self.config.out / "policy"
        if policy.exists() and self.compute < self.config.budget:
            shutil.rmtree(policy)  # a finished run goes on, with a larger budget
        with self.log, self._progress() as progress:
            while self.compute < self.config.budget:
                update, timing, trees = self._one_update()
                self._record(update, timing, trees)
                progress.update(min(self.compute, self.config.budget) - progress.n)
                progress.set_postfix(_postfix(update))
            self._save_policy()

    @property
    def compute(self) -> float:
        """What was spent, in units of one environment step."""
        return self._price(self.collector.costs)

    def _start(self) -> None:
        """Make the policy that training starts from, and evaluate it."""
        begin = time.perf_counter()
        policy = warm_start(self.config)
        cloned = time.perf_counter()
        policy.save(self.config.out / "start")
        self._build(policy)
        success, steps = self._evaluate()
        end = time.perf_counter()
        self._record(
            Update(update=0, eval_success=success, eval_steps=steps),
            Timing(0, end - begin, 0.0, 0.0, 0.0, cloned - begin, end - cloned),
            trees=[],
        )

    def _build(self, policy: Policy) -> None:
        config = self.config
        reference = Policy.load(config.out / "start") if config.learning.kl else None
        self.policy = policy
        self.learner = Learner(policy, config.learning, reference=reference)
        self.collector = Collector(policy, config.world.make_train, config.prompt)
        self.evaluator = Collector(policy, config.world.make_held_out, config.prompt)

    def _one_update(self) -> tuple[Update, Timing, list[Group]]:
        config, costs = self.config, self.collector.costs
        before, begin = Costs(**asdict(costs)), time.perf_counter()
        self.update += 1
        threshold = self.trigger.threshold
        trees = self.collector.collect(
            self._tasks(),
            roots=config.roots,
            siblings=config.tree.siblings,
            rule=self.trigger if config.algorithm.branches else None,
            seed=(config.seed, self.update),
        )
        collected = time.perf_counter()
        for tree in trees:
            config.algorithm.estimator(tree)
        gradient = self.learner.update(trees)
        self.trigger.end_update(trees)
        self.anova.end_update(trees)
        learned = time.perf_counter()
        success, steps = self._evaluate() if self._evaluates_now() else (None, None)
        end = time.perf_counter()
        update = Update(
            update=self.update,
            **self._totals(),
            **describe(trees),
            threshold=threshold if config.algorithm.branches else None,
            eta=self.anova.eta,
            remaining=self.anova.remaining,
            predicted_efficiency=self._predicted_efficiency(),
            grad_norm=gradient.norm,
            grad_variance=gradient.variance,
            grad_cost=(self.compute - self._price(before)) / len(trees),
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

    def _predicted_efficiency(self) -> float | None:
        """What the trees say of branching here, against as many independent episodes."""
        roots, siblings = self.config.roots, self.config.tree.siblings
        if roots < 2:
            return None
        return self.anova.efficiency(roots=roots, siblings=siblings, episodes=roots * siblings)

    def _record(self, update: Update, timing: Timing, trees: Sequence[Group]) -> None:
        """Write the rows first, then the checkpoint: a resumed run cuts rows, never misses one."""
        config = self.config
        self.log.write(update, timing)
        if trees and self.update % config.tree_every == 0:
            first = next(trees[0].steps())
            self.log.write_tree(
                self.update, algo=config.algo, task=task_of(first.prompt), tree=trees[0]
            )
        if self.update % config.checkpoint_every == 0 or self.compute >= config.budget:
            checkpoint.save_checkpoint(config, self._state())

    def _state(self) -> dict[str, Any]:
        return {
            "update": self.update,
            "costs": asdict(self.collector.costs),
            "learner": self.learner.state_dict(),
            "trigger": self.trigger.state_dict(),
            "anova": self.anova.state_dict(),
        }

    def _load(self, state: dict[str, Any]) -> None:
        self.update = state["update"]
        self.collector.costs = Costs(**state["costs"])
        self.learner.load_state_dict(state["learner"])
        self.trigger.load_state_dict(state["trigger"])
        self.anova.load_state_dict(state["anova"])

    def _save_policy(self) -> None:
        """Write the final policy beside its place and move it there, so that it is whole."""
        target = self.config.out / "policy"
        if target.exists():
            return
        unfinished = self.config.out / "policy.tmp"
        self.policy.save(unfinished)
        unfinished.rename(target)

    def _progress(self) -> Any:
        return tqdm(
            total=self.config.budget,
            initial=min(self.compute, self.config.budget),
            desc=f"{self.config.algo} seed {self.config.seed}",
            unit="step",
            bar_format="{desc} {percentage:3.0f}% |{bar}| {elapsed}<{remaining}{postfix}",
            disable=None,
        )


def warm_start(config: TrainConfig) -> Policy:
    """The policy before the first update: built or loaded, then cloned on walkthroughs."""
    world = config.world
    if config.policy.model == "tiny":
        tasks = range(min(world.train_tasks, config.cloning.tasks))
        texts = sample_texts(world.make_train(), tasks, config.prompt, seed=config.seed)
        policy = Policy.tiny(
            texts, seed=config.seed, width=config.policy.width, layers=config.policy.layers
        )
    else:
        policy = Policy.load(config.policy.model)
    if config.cloning.steps:
        expert = world.make_expert()
        decisions = demonstrations(
            expert,
            range(config.cloning.tasks),
            config.prompt,
            detour=config.cloning.detour,
            seed=config.seed,
        )
        clone(policy, list(decisions), config.cloning, seed=config.seed)
    return policy


def main(arguments: Sequence[str] | None = None) -> int:
    """Train what the command line asks for."""
    # That of transformers, which has one for every file it writes.
    disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        config = tyro.cli(TrainConfig, args=arguments, description=__doc__)
        Trainer(config).run()
    except SandboxGymError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(
            f"error: {error}: what was written stays, and the same command with --resume goes on",
            file=sys.stderr,
        )
        return 2
    except KeyboardInterrupt:
        print("interrupted: the same command with --resume goes on", file=sys.stderr)
        return 130
    return 0


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


if __name__ == "__main__":
    raise SystemExit(main())
