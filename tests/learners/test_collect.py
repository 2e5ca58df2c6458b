import numpy as np
import pytest
from gymnasium import spaces

import sandboxgym as sg
from sandboxgym_learners.branching import EntropyTrigger
from sandboxgym_learners.collect import Collector, Costs
from sandboxgym_learners.policy import Query
from sandboxgym_learners.prompts import PromptFormat
from sandboxgym_learners.tree import Group, Segment, Step
from sandboxgym_learners.worlds import WorldConfig, WorldError, commands, demonstrations, start

FORM = PromptFormat()


class At:
    """Branch at given depths, and remember what was asked."""

    def __init__(self, *depths: int) -> None:
        self.depths = depths
        self.asked: list[tuple[float, int, tuple[int, ...]]] = []

    def opens(self, entropy, *, depth, branches):
        self.asked.append((entropy, depth, tuple(branches)))
        return depth in self.depths


@pytest.fixture
def collector(policy, errands):
    return Collector(policy, errands.make_train, FORM)


def paths(group: Group, above: tuple[Step, ...] = ()) -> list[list[Step]]:
    """Every episode of a tree, from the reset to its end."""
    found: list[list[Step]] = []
    for member in group.members:
        steps = (*above, *member.steps)
        found += [list(steps)] if member.branch is None else paths(member.branch, steps)
    return found


def test_a_tree_has_the_planned_shape(collector):
    [tree] = collector.collect([3], roots=2, siblings=4, rule=At(2), seed=(0, 1))
    assert tree.planned == len(tree.members) == 2
    for root in tree.members:
        assert [step.depth for step in root.steps] == [0, 1]
        assert root.branch is not None
        assert root.branch.planned == len(root.branch.members) == 4
        for fork in root.branch.members:
            assert fork.branch is None
            assert fork.steps[0].depth == 2
            assert fork.steps[0].prompt == root.branch.members[0].steps[0].prompt
            assert isinstance(fork.success, bool)
    assert sum(visit.weight for visit in tree.leaves()) == pytest.approx(1)


def test_backbones_branch_again_and_forks_do_not(collector):
    [tree] = collector.collect([3], roots=2, siblings=3, rule=At(1, 2), seed=(0, 4))
    for root in tree.members:
        first = root.branch
        assert first is not None
        second = first.members[0].branch
        assert second is not None
        assert len(first.members[0].steps) == 1
        assert all(fork.branch is None for fork in [*first.members[1:], *second.members])
    assert len(tree.returns()) == 2 * (1 + 2 * (3 - 1))


def test_a_branch_at_the_very_start_leaves_an_empty_segment_above(collector):
    [tree] = collector.collect([3], roots=2, siblings=3, rule=At(0), seed=(0, 1))
    assert all(root.steps == [] and root.branch is not None for root in tree.members)


def test_the_rule_sees_every_backbone_decision_and_nothing_of_forks(collector):
    rule = At(2)
    [tree] = collector.collect([3], roots=2, siblings=5, rule=rule, seed=(0, 1))
    backbones = [[*root.steps, *root.branch.members[0].steps] for root in tree.members]
    assert len(rule.asked) == sum(len(steps) for steps in backbones)
    seen = sorted((step.depth, step.entropy) for steps in backbones for step in steps)
    assert sorted((depth, entropy) for entropy, depth, _ in rule.asked) == seen
    assert all(branches == ((2,) if depth > 2 else ()) for _, depth, branches in rule.asked)


@pytest.mark.parametrize("depths", [(), (1,), (2, 5)])
def test_every_episode_replays_to_what_was_recorded(collector, errands, depths):
    trees = collector.collect([3, 8], roots=3, siblings=3, rule=At(*depths), seed=(0, 1))
    env = errands.make_train()
    for task, tree in zip([3, 8], trees, strict=True):
        episodes = paths(tree)
        assert len(episodes) == len(tree.returns())
        for steps in episodes:
            _, info = start(env, task)
            for step in steps:
                assert commands(info) == step.candidates
                assert step.candidates[step.choice] == step.action
                observation, reward, terminated, truncated, info = env.step(step.action)
                assert (observation, reward) == (step.observation, step.reward)
            assert terminated or truncated


def test_recorded_probabilities_are_those_of_the_policy(collector, policy):
    [tree] = collector.collect([3], roots=2, siblings=3, rule=At(1), seed=(0, 1))
    steps = list(tree.steps())
    answers = policy.decide(policy.encode([Query(s.prompt, s.candidates) for s in steps]))
    for step, answer in zip(steps, answers, strict=True):
        assert step.logprob == pytest.approx(answer[step.choice], abs=1e-5)
        assert step.entropy == pytest.approx(-np.sum(np.exp(answer) * answer), abs=1e-5)


def test_siblings_are_independent_draws_at_temperature_one(collector, policy):
    count = 600
    rule = At(0)
    [tree] = collector.collect([3], roots=1, siblings=count, rule=rule, seed=(0, 1))
    first = [fork.steps[0] for fork in tree.members[0].branch.members]
    [answer] = policy.decide(policy.encode([Query(first[0].prompt, first[0].candidates)]))
    expected = np.exp(answer)
    assert (expected > 0.02).sum() >= 3, "a certain policy would prove nothing"
    found = np.bincount([step.choice for step in first], minlength=len(expected)) / count
    np.testing.assert_allclose(found, expected, atol=4 * 0.5 / count**0.5)


def actions(tree: Group) -> list[list[str]]:
    return [[step.action for step in steps] for steps in paths(tree)]


def test_the_seed_decides_everything(collector):
    def collect(seed):
        return collector.collect([3, 4], roots=2, siblings=3, rule=At(1), seed=seed)

    assert collect((0, 1)) == collect((0, 1))
    assert [actions(tree) for tree in collect((0, 1))] != [actions(t) for t in collect((0, 2))]


def test_a_tree_does_not_depend_on_the_trees_beside_it(collector, policy, errands):
    alone = collector.collect([3], roots=2, siblings=4, rule=At(2), seed=(0, 1))
    many = Collector(policy, errands.make_train, FORM).collect(
        [3, 9, 11, 12], roots=2, siblings=4, rule=At(2), seed=(0, 1)
    )
    assert actions(alone[0]) == actions(many[0])


def test_members_of_a_group_have_environment_randomness_of_their_own(policy):
    foggy = WorldConfig(
        env="tests.learners.errands:tests/Errands-v0",
        arguments=("fog=0.5",),
        train=(),
        held_out=(),
    )
    collector = Collector(policy, foggy.make_train, FORM)
    [tree] = collector.collect([3], roots=2, siblings=40, rule=At(1), seed=(0, 2))
    [flat] = collector.collect([3], roots=40, seed=(0, 2))

    def fog_after_same_action(segments: list[Segment]) -> set[str]:
        went = [s.steps[0] for s in segments if s.steps[0].action.startswith("go to shelf")]
        action = max({s.action for s in went}, key=[s.action for s in went].count)
        return {step.observation for step in went if step.action == action}

    for group in [flat, *(root.branch for root in tree.members if root.branch)][:3]:
        assert len(fog_after_same_action(group.members)) == 2


def test_the_first_root_has_fresh_randomness_in_every_update(policy):
    foggy = WorldConfig(
        env="tests.learners.errands:tests/Errands-v0",
        arguments=("fog=0.5",),
        train=(),
        held_out=(),
    )
    collector = Collector(policy, foggy.make_train, FORM)
    seen: dict[str, set[str]] = {}
    for update in range(40):
        [tree] = collector.collect([3], roots=2, seed=(0, update))
        first = tree.members[0].steps[0]
        seen.setdefault(first.action, set()).add(first.observation)
    assert any(len(observations) > 1 for observations in seen.values())


def test_costs_are_counted(collector):
    trees = collector.collect([3, 4, 5], roots=2, siblings=4, rule=At(1), seed=(0, 1))
    costs = collector.costs
    assert costs.env_steps == sum(tree.env_steps() for tree in trees)
    assert costs.returns == sum(len(tree.returns()) for tree in trees)
    groups = [group for tree in trees for group in tree.groups()]
    assert costs.restores == sum(group.planned - 1 for group in groups)
    tokens = sum(len(step.action.split()) for tree in trees for step in tree.steps())
    assert costs.generated_tokens == tokens
    assert costs.forward_tokens > costs.generated_tokens
    assert costs.policy_s > 0
    assert costs == Costs(3 * 8, costs.env_steps, tokens, costs.forward_tokens, costs.restores)


def test_environments_are_used_again(policy, errands):
    made = []

    def make():
        made.append(errands.make_train())
        return made[-1]

    collector = Collector(policy, make, FORM)
    collector.collect([3, 4], roots=2, siblings=4, rule=At(1), seed=(0, 1))
    assert len(made) <= 2 * 2 * 4
    before = len(made)
    collector.collect([5, 6], roots=2, siblings=4, rule=At(1), seed=(0, 2))
    assert len(made) == before


def test_an_entropy_trigger_branches_at_the_first_crossing(collector):
    trigger = EntropyTrigger(quantile=0.5)
    trees = collector.collect([3, 4, 5, 6], roots=2, siblings=4, rule=trigger, seed=(0, 1))
    assert all(root.branch is None for tree in trees for root in tree.members)
    trigger.end_update(trees)
    trees = collector.collect([3, 4, 5, 6], roots=2, siblings=4, rule=trigger, seed=(0, 2))
    roots = [root for tree in trees for root in tree.members]
    assert any(root.branch is not None for root in roots)
    for root in roots:
        assert all(step.entropy < trigger.threshold for step in root.steps)
        if root.branch is not None:
            assert root.branch.members[0].steps[0].entropy >= trigger.threshold


class Silent(sg.ForkableEnv[str, str]):
    action_space = observation_space = spaces.Text(100)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return "Nothing to do.", {}

    def step(self, action):
        return "", 0.0, False, False, {}

    def get_state(self):
        return {}

    def set_state(self, state):
        pass


def test_a_world_without_commands_is_refused(policy):
    with pytest.raises(WorldError, match="admissible_commands"):
        Collector(policy, Silent, FORM).collect([0], roots=1, seed=(0,))


def test_a_world_that_cannot_be_made_is_refused():
    with pytest.raises(WorldError, match="tests/Nowhere-v0"):
        WorldConfig(env="tests/Nowhere-v0").make_train()
    with pytest.raises(WorldError, match="not name=value"):
        WorldConfig(arguments=("fast",)).make_train()


def test_arguments_that_are_json_are_read_as_it(errands):
    world = WorldConfig(env=errands.env, arguments=("fog=0.25",), train=("split=test",))
    env = world.make_train().unwrapped
    assert (env.fog, env.offset) == (0.25, 1000)


def test_demonstrations_follow_the_expert_to_the_goal(errands):
    decisions = list(demonstrations(errands.make_expert(), [3, 4], FORM))
    assert len(decisions) == 2 * 4
    chosen = [d.query.candidates[d.choice] for d in decisions]
    assert [action.split()[0] for action in chosen] == ["go", "take", "go", "put"] * 2


def test_a_detour_shows_the_expert_where_no_walkthrough_leads(errands):
    env = errands.make_expert()
    straight = {d.query.prompt for d in demonstrations(env, range(40), FORM)}
    wandered = list(demonstrations(env, range(40), FORM, detour=3, seed=1))
    assert any(d.query.prompt not in straight for d in wandered)
    assert wandered == list(demonstrations(env, range(40), FORM, detour=3, seed=1))
    ends = [d for d in wandered if d.query.candidates[d.choice].startswith("put")]
    assert len(ends) >= 35, "nearly every task should end with the ball being put down"


def test_without_an_expert_cloning_is_refused(errands):
    with pytest.raises(WorldError, match="expert_plan"):
        list(demonstrations(errands.make_train(), [0], FORM))
