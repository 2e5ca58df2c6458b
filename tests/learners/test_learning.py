import copy

import numpy as np
import pytest
import torch

from sandboxgym_learners.advantages import nested_loo
from sandboxgym_learners.algorithms import Schedule
from sandboxgym_learners.branching import EntropyTrigger
from sandboxgym_learners.cloning import clone
from sandboxgym_learners.collect import Collector
from sandboxgym_learners.config import CloningConfig, LearningConfig
from sandboxgym_learners.divergence import DivergenceError
from sandboxgym_learners.learning import Learner
from sandboxgym_learners.policy import Query
from sandboxgym_learners.prompts import PromptFormat
from sandboxgym_learners.scoring import ScoringPolicy
from sandboxgym_learners.summary import describe
from sandboxgym_learners.tree import Group, Segment, Step
from sandboxgym_learners.worlds import demonstrations


@pytest.fixture(scope="module")
def trees(cloned, errands) -> list[Group]:
    """Credited trees that branch, at least two of them with something to learn from."""
    trigger = EntropyTrigger(quantile=0.5, threshold=0.5)
    collector = Collector(cloned, errands.make_train, PromptFormat())
    found = collector.collect(range(6), roots=2, siblings=4, rule=trigger, seed=(0, 1))
    for tree in found:
        nested_loo(tree)
    assert any(root.branch for tree in found for root in tree.members)
    assert sum(any(step.advantage for step in tree.steps()) for tree in found) >= 2
    return found


def weights(policy: ScoringPolicy) -> torch.Tensor:
    return torch.cat([p.detach().flatten().clone() for p in policy.model.parameters()])


def plain(policy: ScoringPolicy, rate: float, *, epochs=1, minibatches=1, **options) -> Learner:
    """Gradient steps without momentum."""
    schedule = Schedule(rate, epochs, minibatches)
    learner = Learner(policy, LearningConfig(warmup=0, **options), schedule)
    learner.optimiser = torch.optim.SGD(learner.parameters, lr=rate)
    return learner


def direct_gradient(policy: ScoringPolicy, tree: Group) -> torch.Tensor:
    """-Σ weight · advantage · ∇ log π over every decision, one at a time."""
    policy.model.zero_grad()
    loss = torch.zeros(())
    for step in tree.steps():
        log_probs = policy.log_probs(policy.encode([Query(step.prompt, step.candidates)]))
        loss = loss - step.weight * step.advantage * log_probs[0, step.choice]
    loss.backward()
    return torch.cat([p.grad.flatten() for p in policy.model.parameters()])


def test_the_first_pass_follows_the_policy_gradient(policy, trees):
    rate = 0.01
    learner = plain(policy, rate, max_norm=1e9)
    gradients = [direct_gradient(policy, tree) for tree in trees]
    before = weights(policy)
    statistics = learner.update(trees)
    mean = torch.stack(gradients).mean(0)
    torch.testing.assert_close((before - weights(policy)) / rate, mean, atol=2e-4, rtol=1e-3)
    assert statistics.norm == pytest.approx(mean.norm().item(), rel=1e-4)
    spread = torch.stack(gradients).double().var(0, unbiased=True).sum().item()
    assert statistics.variance == pytest.approx(spread, rel=1e-3)


def test_one_tree_has_no_variance_to_estimate(policy, trees):
    assert Learner(policy, LearningConfig()).update(trees[:1]).variance is None


def test_long_gradients_are_shortened(policy, trees):
    learner = plain(policy, 1.0, max_norm=0.01)
    before = weights(policy)
    assert learner.update(trees).norm > 0.01
    assert (weights(policy) - before).norm().item() == pytest.approx(0.01, rel=1e-3)


def test_trees_without_advantage_change_nothing(policy, trees):
    flat = [copy.deepcopy(tree) for tree in trees]
    for tree in flat:
        for step in tree.steps():
            step.advantage = 0.0
    before = weights(policy)
    statistics = Learner(policy, LearningConfig()).update(flat)
    assert (statistics.norm, statistics.variance) == (0.0, 0.0)
    assert torch.equal(before, weights(policy))


def chosen_probability(policy: ScoringPolicy, step: Step) -> float:
    [answer] = policy.decide(policy.encode([Query(step.prompt, step.candidates)]))
    return float(np.exp(answer[step.choice]))


def single_decision(policy: ScoringPolicy, trees: list[Group], advantage: float) -> Group:
    step = copy.deepcopy(max(trees[0].steps(), key=lambda s: s.entropy))
    step.weight, step.advantage = 1.0, advantage
    return Group([Segment([step])], planned=1)


@pytest.mark.parametrize("advantage", [1.0, -1.0])
def test_clipping_stops_at_the_ratio(policy, trees, advantage):
    tree = single_decision(policy, trees, advantage)
    [step] = tree.steps()
    before = chosen_probability(policy, step)
    learner = plain(policy, 1e-3, epochs=60, clip=0.1)
    learner.update([tree])
    ratio = chosen_probability(policy, step) / before
    assert 0.1 < advantage * (ratio - 1) < 0.2, "it should cross the limit, then stop"


def test_the_divergence_pulls_back_to_the_reference(policy, trees):
    reference = ScoringPolicy(copy.deepcopy(policy.model), policy.tokenizer)
    tree = single_decision(policy, trees, advantage=1.0)
    [step] = tree.steps()
    start = chosen_probability(policy, step)

    def after(kl: float) -> float:
        free = ScoringPolicy(copy.deepcopy(policy.model), policy.tokenizer)
        config = LearningConfig(warmup=0, clip=10.0, kl=kl)
        Learner(free, config, Schedule(1e-3, epochs=40), reference=reference).update([tree])
        return chosen_probability(free, step)

    assert after(0.0) > after(0.5) > after(5.0) > start
    with pytest.raises(ValueError, match="reference"):
        Learner(policy, LearningConfig(kl=0.1))


def test_minibatches_add_up_to_the_whole(policy, trees):
    rate = 1e-5  # so small that the policy stays the same during the pass
    gradients = [direct_gradient(policy, tree) for tree in trees]
    before = weights(policy)
    statistics = plain(policy, rate, minibatches=4, max_norm=1e9).update(trees)
    moved = (before - weights(policy)) / rate / 4
    mean = torch.stack(gradients).mean(0)
    assert torch.cosine_similarity(moved, mean, dim=0) > 0.95
    assert moved.norm().item() == pytest.approx(mean.norm().item(), rel=0.1)
    assert statistics.variance is None
    assert statistics.norm > 0


def test_every_pass_has_as_many_steps_as_minibatches(policy, trees):
    learner = plain(policy, 1e-3, epochs=3, minibatches=4)
    learner.update(trees)
    assert learner.steps == 12


def mean_entropy(policy: ScoringPolicy, trees: list[Group]) -> float:
    steps = [step for tree in trees for step in tree.steps()]
    outlooks = policy.consider([Query(step.prompt, step.candidates) for step in steps])
    return float(np.mean([outlook.entropy for outlook in outlooks]))


def test_the_bonus_keeps_the_policy_undecided(policy, trees):
    flat = copy.deepcopy(trees)
    for step in (step for tree in flat for step in tree.steps()):
        step.advantage = 0.0
    before = mean_entropy(policy, flat)
    plain(policy, 0.03, epochs=4, entropy=0.2).update(flat)
    assert mean_entropy(policy, flat) > before + 0.01


def test_the_rate_grows_to_what_it_is(policy, trees):
    learner = Learner(policy, LearningConfig(warmup=4), Schedule(rate=1e-3))
    rates = []
    for _ in range(6):
        learner.update(trees[:1])
        rates.append(learner.optimiser.param_groups[0]["lr"])
    assert rates == pytest.approx([0.25e-3, 0.5e-3, 0.75e-3, 1e-3, 1e-3, 1e-3])


def test_a_gradient_that_is_no_number_ends_training_and_says_what_to_change(policy, trees):
    broken = copy.deepcopy(trees[:1])
    next(broken[0].steps()).advantage = float("nan")
    before = weights(policy)
    with pytest.raises(DivergenceError, match=r"--learning\.rate"):
        Learner(policy, LearningConfig()).update(broken)
    assert torch.equal(before, weights(policy))


def test_a_learner_goes_on_from_its_state(policy, trees):
    def fresh() -> Learner:
        return Learner(
            ScoringPolicy(copy.deepcopy(policy.model), policy.tokenizer), LearningConfig()
        )

    straight = fresh()
    straight.update(trees[:3])
    state = copy.deepcopy(straight.state_dict())
    straight.update(trees[3:])
    resumed = fresh()
    resumed.load_state_dict(state)
    resumed.update(trees[3:])
    assert torch.equal(weights(straight.policy), weights(resumed.policy))


def test_cloning_makes_the_expert_likely(errand_texts, errands):
    policy = ScoringPolicy.tiny(errand_texts, seed=0, width=16)
    expert = list(demonstrations(errands.make_expert(), range(10), PromptFormat()))

    def likelihood() -> float:
        answers = policy.decide(policy.encode([d.query for d in expert]))
        return float(np.mean([a[d.choice] for a, d in zip(answers, expert, strict=True)]))

    before = likelihood()
    loss = clone(policy, expert, CloningConfig(steps=40, batch=8, rate=1e-2), seed=0)
    assert likelihood() > before + 1
    assert loss < -before


def leaf(depth: int, reward: float, entropy: float, action: str = "look") -> Segment:
    step = Step("p", ("look",), 0, action, -0.1, entropy, reward, "o", depth)
    return Segment([step], success=reward > 0)


def test_a_description_counts_by_path_weight():
    forks = Group([leaf(1, 1.0, 0.2), leaf(1, 0.0, 0.6, "go")], planned=2)
    prefix = leaf(0, 0.0, 1.0)
    prefix.success, prefix.branch = None, forks
    tree = Group([prefix, leaf(0, 0.0, 0.0)], planned=2)
    assert describe([tree]) == {
        "success": 0.25,
        "mean_return": 0.25,
        "episode_steps": 1.5,
        "entropy": pytest.approx((0.5 * 1.0 + 0.25 * 0.2 + 0.25 * 0.6) / 1.5),
        "branch_points": 1,
        "same_action_share": 0.0,
        "constant_share": 0.0,
    }


def test_groups_of_one_action_or_one_return_are_counted():
    same = Group([leaf(1, 1.0, 0.1), leaf(1, 1.0, 0.1)], planned=2)
    prefix = leaf(0, 0.0, 1.0)
    prefix.success, prefix.branch = None, same
    tree = Group([prefix, leaf(0, 0.0, 0.0)], planned=2)
    found = describe([tree, Group([leaf(0, 0.0, 0.0)] * 2, planned=2)])
    assert found["same_action_share"] == 1.0
    assert found["constant_share"] == pytest.approx(2 / 3)
