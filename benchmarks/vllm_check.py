"""For a machine with a GPU: does vLLM write what the learner's model would?

    python -m benchmarks.vllm_check --model Qwen/Qwen2.5-0.5B-Instruct

draws answers with vLLM before and after a change of the adapter, lets the learner's model judge
them, and prints how far the log-probabilities lie apart. It fails where the
mean difference of a token exceeds 0.05, as it does if vLLM kept an old adapter.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch

from sandboxgym_learners.config import PolicyConfig
from sandboxgym_learners.models import new_policy
from sandboxgym_learners.policy import Query
from sandboxgym_learners.tree import Step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--siblings", type=int, default=8)
    options = parser.parse_args()
    config = PolicyConfig(
        model=options.model,
        answers="text",
        engine="vllm",
        lora=16,
        precision="bfloat16",
        device="cuda",
    )
    policy = new_policy(config, "command", list, seed=0)
    query = Query("Task: put a mug on the desk.\nYou see: a desk 1 and a mug 1.\nAction:")
    generators = [np.random.default_rng(n) for n in range(options.siblings)]
    for moved in (False, True):
        if moved:
            with torch.no_grad():
                for weight in policy.weights().values():
                    weight.add_(0.01 * torch.randn_like(weight))
            policy.weights_changed()
        outlooks = policy.consider([query]) * options.siblings
        acts = policy.draw(outlooks, generators)
        steps = [
            Step(query.prompt, (), -1, act.action, act.logprob, 0, 0, "", 0, written=act.written)
            for act in acts
        ]
        with torch.no_grad():
            judged = policy.judge(policy.recall(steps)).log_probs.cpu()
        apart = [
            abs(float(judged[row, place]) - logprob)
            for row, act in enumerate(acts)
            for place, logprob in enumerate(act.written_logprobs)
        ]
        mean = sum(apart) / len(apart)
        print(f"adapter {'moved' if moved else 'new'}: {acts[0].text!r}, apart by {mean:.4f}")
        if mean > 0.05:
            raise SystemExit("vLLM and the learner's model disagree")


if __name__ == "__main__":
    main()
