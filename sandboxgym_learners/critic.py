"""The critic of PPO: what return does the policy have to expect from here?

A head with one hidden layer reads the last hidden state of a language model at the end of the
prompt. The model is a copy of the policy that training starts from, learning with the head
(`own_body`), or the policy itself, which the critic then leaves alone. Either way the value of a
decision depends on the prompt only, and so is known before the action is drawn.

Values are in the unit of returns. The last layer starts at zero, so that before the first update
every value is 0 and the advantage of a decision is what followed it.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from sandboxgym_learners.config import CriticConfig
from sandboxgym_learners.policy import Policy, batches, minibatches
from sandboxgym_learners.tree import Group, Step


class Critic:
    """Values decisions, and learns from the λ-returns that `advantages.gae` makes of them."""

    def __init__(self, policy: Policy, config: CriticConfig, *, seed: int) -> None:
        """Make a critic for `policy`, which must still be the one that training starts from."""
        self.config = config
        self.reader = policy
        self.seed = seed
        self.updates = 0
        if config.own_body:
            self.reader = copy.copy(policy)
            self.reader.model = copy.deepcopy(policy.model)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.head = _head(policy.model.config.hidden_size, config.width)
        self.head.to(policy.model.device)
        self.parameters = list(self.head.parameters())
        if config.own_body:
            self.parameters += [p for p in self.reader.model.parameters() if p.requires_grad]
        self.optimiser = torch.optim.Adam(self.parameters, lr=config.rate)

    @torch.no_grad()
    def value(self, trees: Sequence[Group]) -> None:
        """Write `Step.value` on every decision of some trees."""
        steps = [step for tree in trees for step in tree.steps()]
        prompts, places = self._prompts(steps)
        known = torch.zeros(len(prompts))
        for batch in batches([len(prompt) for prompt in prompts]):
            known[batch] = self._values([prompts[i] for i in batch])
        for step, place in zip(steps, places, strict=True):
            step.value = known[place].item()

    def learn(self, trees: Sequence[Group]) -> float:
        """Move the values of decisions towards their λ-returns, advantage + value.

        Call it with the advantages as `gae` left them.

        Returns:
            The share of the variance of these returns that the values had explained before.
        """
        steps = [step for tree in trees for step in tree.steps()]
        prompts, places = self._prompts(steps)
        old = torch.tensor([step.value for step in steps])
        targets = old + torch.tensor([step.advantage for step in steps])
        for chosen in minibatches(
            len(steps),
            parts=self.config.minibatches,
            epochs=self.config.epochs,
            seed=(self.seed, self.updates),
        ):
            self.optimiser.zero_grad()
            for batch in batches([len(prompts[places[i]]) for i in chosen]):
                picked = [chosen[i] for i in batch]
                values = self._values([prompts[places[i]] for i in picked])
                loss = self._loss(values, old[picked], targets[picked]).sum() / len(chosen)
                loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(self.parameters, 1.0)
            self.optimiser.step()
        self.updates += 1
        return _explained(old, targets)

    def _values(self, prompts: Sequence[Sequence[int]]) -> Tensor:
        with torch.set_grad_enabled(torch.is_grad_enabled() and self.config.own_body):
            features = self.reader.features(prompts)
        values: Tensor = self.head(features).squeeze(1).cpu()
        return values

    def _loss(self, values: Tensor, old: Tensor, targets: Tensor) -> Tensor:
        loss = (values - targets).square()
        if self.config.clip is None:
            return loss
        near = old + (values - old).clamp(-self.config.clip, self.config.clip)
        return torch.maximum(loss, (near - targets).square())

    def _prompts(self, steps: Sequence[Step]) -> tuple[list[Sequence[int]], list[int]]:
        """The different prompts in tokens, and which of them each step has."""
        first = {step.prompt: step for step in reversed(steps)}
        numbers = {prompt: number for number, prompt in enumerate(first)}
        tokens = [taken.prompt for taken in self.reader.recall(list(first.values()))]
        return tokens, [numbers[step.prompt] for step in steps]

    def state_dict(self) -> dict[str, Any]:
        """Weights and optimiser, for a checkpoint."""
        state = {"head": self.head.state_dict(), "optimiser": self.optimiser.state_dict()}
        if self.config.own_body:
            state["body"] = self.reader.model.state_dict()
        return {**state, "updates": self.updates}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` gave."""
        self.head.load_state_dict(state["head"])
        self.optimiser.load_state_dict(state["optimiser"])
        if self.config.own_body:
            self.reader.model.load_state_dict(state["body"])
        self.updates = state["updates"]


def _head(features: int, width: int) -> nn.Sequential:
    last = nn.Linear(width, 1)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    return nn.Sequential(nn.Linear(features, width), nn.Tanh(), last)


def _explained(values: Tensor, targets: Tensor) -> float:
    """1 - the variance that is left over the variance there was; 0 where there was none."""
    spread = targets.double().var(unbiased=False).item()
    if spread == 0:
        return 0.0
    return 1 - (targets - values).double().var(unbiased=False).item() / spread
