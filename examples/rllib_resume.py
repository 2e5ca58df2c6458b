"""PPO of RLlib on a household task, stopped in the middle of its episodes and resumed.

    pip install "sandboxgym[rllib]"
    python examples/rllib_resume.py

RLlib's checkpoints hold the weights and no environments, so that all episodes begin anew. With the
runner of this package they hold the sandboxes too.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import ray
from menu import make_menu_env
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.ppo import PPOConfig

from sandboxgym.integrations.rllib.runner import SandboxEnvRunner
from sandboxgym.integrations.rllib.vector import MODE, register_sandboxes


def configuration() -> PPOConfig:
    """Small enough for two cores; everything is in this process, but for the sandboxes."""
    return (
        PPOConfig()
        .environment(register_sandboxes("household", make_menu_env, workers=1))
        .env_runners(
            env_runner_cls=SandboxEnvRunner,
            num_env_runners=0,
            num_envs_per_env_runner=4,
            gym_env_vectorize_mode=MODE,
            rollout_fragment_length=33,
        )
        .learners(num_learners=0)
        .training(train_batch_size_per_learner=132, minibatch_size=66, num_epochs=2)
        .debugging(seed=0)
    )


def under_way(algorithm: Algorithm) -> list[int]:
    """How many steps have been taken in the episodes that are under way."""
    return [int(steps) for steps in algorithm.env_runner.sandboxes.call("_elapsed_steps")]


def main(folder: Path) -> tuple[list[int], list[int]]:
    """Train, save, build another, load; the steps under way before and after."""
    ray.init(num_cpus=1, include_dashboard=False, object_store_memory=80_000_000)
    try:
        first = configuration().build_algo()
        first.train()
        first.save_to_path(folder / "checkpoint")
        before = under_way(first)
        first.stop()
        second = configuration().build_algo()
        second.restore_from_path(folder / "checkpoint")
        after = under_way(second)
        print(f"steps under way when it was saved: {before}, when it was loaded: {after}")
        second.train()
        second.stop()
    finally:
        ray.shutdown()
    return before, after


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        main(Path(made))
