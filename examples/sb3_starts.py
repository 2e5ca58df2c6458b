"""PPO of Stable-Baselines3 on a household task, whose episodes begin along a plan.

    pip install "sandboxgym[sb3]"
    python examples/sb3_starts.py

Only winning pays, and who plays at random hardly ever wins. So the same PPO is trained twice: with
episodes that begin at the start, and with such that begin at a snapshot somewhere on a plan, from
where winning is a few steps. Both are tested from the start.
"""

from __future__ import annotations

import random

import torch
from menu import make_menu_env, moments_of_a_plan
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecMonitor

from sandboxgym.integrations.sb3.vec_env import SandboxVecEnv

LANES = 8


def trained(steps: int, *, along_plan: bool) -> float:
    """Train, and test from the start: the share of episodes that are won."""
    envs = SandboxVecEnv(make_menu_env, LANES, workers=1)
    if along_plan:
        moments = [envs.pool.put(moment) for moment in moments_of_a_plan()]
        rng = random.Random(0)
        envs.begin = lambda lane: rng.choice(moments)
    monitored = VecMonitor(envs)
    model = PPO(
        "MlpPolicy",
        monitored,
        n_steps=64,
        batch_size=128,
        learning_rate=1e-3,
        ent_coef=0.02,
        gamma=0.95,
        seed=0,
        device="cpu",
    )
    model.learn(steps)
    envs.begin = None
    won, _ = evaluate_policy(model, monitored, n_eval_episodes=20, deterministic=False)
    monitored.close()
    return float(won)


def main(steps: int = 12_000) -> dict[str, float]:
    """Train both ways; how often each wins from the start."""
    torch.set_num_threads(1)  # the network is small
    won = {
        "from the start": trained(steps, along_plan=False),
        "along the plan": trained(steps, along_plan=True),
    }
    for beginning, share in won.items():
        print(f"episodes that began {beginning}: {share:.0%} won from the start")
    return won


if __name__ == "__main__":
    main()
