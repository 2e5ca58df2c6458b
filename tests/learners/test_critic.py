import copy

import pytest
import torch

from sandboxgym_learners.advantages import gae
from sandboxgym_learners.collect import Collector
from sandboxgym_learners.config import CriticConfig
from sandboxgym_learners.critic import Critic
from sandboxgym_learners.prompts import PromptFormat
from sandboxgym_learners.tree import Group


@pytest.fixture(scope="module")
def episodes(cloned, errands) -> list[Group]:
    collector = Collector(cloned, errands.make_train, PromptFormat())
    return collector.collect(range(4), roots=3, seed=(0, 1))


@pytest.fixture
def trees(episodes) -> list[Group]:
    return copy.deepcopy(episodes)


def error(critic: Critic, trees: list[Group]) -> float:
    """Mean square distance from the returns to come."""
    critic.value(trees)
    squares = []
    for tree in trees:
        for root in tree.members:
            ahead = root.own_reward()
            for step in root.steps:
                squares.append((step.value - ahead) ** 2)
                ahead -= step.reward
    return sum(squares) / len(squares)


def learn(critic: Critic, trees: list[Group], times: int) -> list[float]:
    explained = []
    for _ in range(times):
        critic.value(trees)
        for tree in trees:
            gae(tree, trace=1.0)
        explained.append(critic.learn(trees))
    return explained


def test_a_new_critic_expects_nothing(policy, trees):
    Critic(policy, CriticConfig(), seed=0).value(trees)
    assert {step.value for tree in trees for step in tree.steps()} == {0.0}


@pytest.mark.parametrize("own_body", [True, False])
def test_a_critic_learns_what_to_expect(policy, trees, own_body):
    critic = Critic(policy, CriticConfig(rate=2e-2, own_body=own_body), seed=0)
    before = error(critic, trees)
    explained = learn(critic, trees, 8)
    assert error(critic, trees) < 0.8 * before
    assert explained[0] == pytest.approx(0, abs=1e-6)
    assert explained[-1] > 0.1


@pytest.mark.parametrize("own_body", [True, False])
def test_the_policy_is_left_alone(policy, trees, own_body):
    before = copy.deepcopy(policy.model.state_dict())
    learn(Critic(policy, CriticConfig(own_body=own_body), seed=0), trees, 2)
    assert all(torch.equal(before[name], now) for name, now in policy.model.state_dict().items())


def test_clipping_keeps_values_near_the_old_ones(policy, trees):
    def moved(clip: float | None) -> float:
        critic = Critic(policy, CriticConfig(rate=2e-2, epochs=8, clip=clip), seed=0)
        learn(critic, trees, 1)
        critic.value(trees)
        return max(abs(step.value) for tree in trees for step in tree.steps())

    assert moved(0.01) < 0.5 * moved(None)


def test_a_critic_goes_on_from_its_state(policy, trees):
    straight = Critic(policy, CriticConfig(), seed=0)
    learn(straight, trees, 1)
    state = copy.deepcopy(straight.state_dict())
    resumed = Critic(policy, CriticConfig(), seed=0)
    resumed.load_state_dict(state)
    learn(straight, trees, 1)
    learn(resumed, trees, 1)
    straight.value(trees)
    values = [step.value for tree in trees for step in tree.steps()]
    resumed.value(trees)
    assert values == [step.value for tree in trees for step in tree.steps()]
