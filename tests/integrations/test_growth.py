"""Trees in tokens: what rows hold, where they branch, and that branches are exact and apart."""

from __future__ import annotations

import random

import gymnasium as gym
import pytest

from sandboxgym.integrations.credit import RolloutTreeError, nested_leave_one_out
from sandboxgym.integrations.growth import Plan, Said, TokenTree
from tests.integrations.scripted import drawn, letters, spelled, text


@pytest.fixture
def env():
    made = gym.make("sandboxgym/ALFWorld-v0", source="synthetic", difficulty="easy")
    made.reset(seed=3)
    yield made
    made.close()


def grown(env, plan: Plan, seed: int = 0):
    rng = random.Random(seed)
    with TokenTree(env, spelled(), plan) as tree:
        while prompts := tree.waiting():
            tree.advance(drawn(prompts, rng))
        return tree.rows()


def replayed(row) -> tuple[str, float]:
    """What the environment says when the commands of a row are given to it one after the other."""
    env = gym.make("sandboxgym/ALFWorld-v0", source="synthetic", difficulty="easy")
    told, total = spelled(), 0.0
    obs, info = env.reset(seed=3)
    said = text(told.opening(obs, info))
    for command in commands(row):
        obs, reward, *_, info = env.step(command)
        said += command + text(told.answer(obs, info))
        total += float(reward)
    env.close()
    return said, total


def commands(row) -> list[str]:
    found, command = [], ""
    for token, is_said in zip(row.tokens, row.mask, strict=True):
        if is_said:
            command += chr(token)
        elif command:
            found.append(command)
            command = ""
    return [*found, command] if command else found


def test_a_tree_has_the_leaves_of_its_plan(env):
    plan = Plan(roots=2, branch_at=(2, 4), members=3, max_decisions=6)
    rows = grown(env, plan)
    assert len(rows) == plan.most_leaves == 18
    assert len({tuple(s.member for s in row.path) for row in rows}) == 18
    for row in rows:
        assert sum(segment.tokens for segment in row.path) == len(row.tokens)
        assert len(row.tokens) == len(row.mask) == len(row.logprobs) == len(row.credits)


def test_every_row_is_an_episode_that_can_be_played_again(env):
    rows = grown(env, Plan(roots=2, branch_at=(2,), members=2, max_decisions=5))
    assert len({text(row.tokens) for row in rows}) > 1
    for row in rows:
        assert len(commands(row)) == 5
        said, total = replayed(row)
        assert said.startswith(text(row.prompt + row.tokens))
        assert total == row.total


def test_siblings_share_what_lies_before_their_branch_point(env):
    first, second = grown(env, Plan(roots=1, branch_at=(2,), members=2, max_decisions=4))
    shared = first.path[0].tokens
    assert first.path[0] == second.path[0]
    assert first.tokens[:shared] == second.tokens[:shared]
    assert commands(first)[:2] == commands(second)[:2]


def test_the_environment_stays_where_it_was(env):
    before = env.state_digest()
    grown(env, Plan(roots=2, branch_at=(1,), max_decisions=3))
    assert env.state_digest() == before


def test_credits_follow_the_rewards_of_the_rows():
    env = gym.make("sandboxgym/ALFWorld-v0", source="synthetic", difficulty="easy")
    env.reset(seed=3)
    winning = env.unwrapped.expert()

    def play(prompts):  # the first episode that waits follows the plan, the others look
        turn = play.turn = getattr(play, "turn", -1) + 1
        wins = Said(letters(winning[turn]), [0.0] * len(winning[turn]))
        return [wins, *[Said(letters("look"), [0.0] * 4)] * (len(prompts) - 1)]

    plan = Plan(roots=2, max_decisions=len(winning))
    with TokenTree(env, spelled(), plan) as tree:
        while prompts := tree.waiting():
            tree.advance(play(prompts))
        won, lost = tree.rows()
    assert (won.total, lost.total) == (1.0, 0.0)
    assert set(won.credits) == {0.5}
    assert set(lost.credits) == {-0.5}
    assert nested_leave_one_out([won.path, lost.path]) == [[0.5], [-0.5]]
    env.close()


def test_an_episode_is_cut_off_where_its_tokens_end(env):
    for row in grown(env, Plan(roots=2, max_decisions=50, max_tokens=900)):
        assert 0 < len(row.tokens) <= 900
        assert row.mask[-1] == 1  # nothing that the model would not answer


def test_what_the_environment_refuses_is_read_by_the_model():
    env = gym.make("sandboxgym/ALFWorld-v0", source="synthetic", difficulty="easy")
    env.reset(seed=3)
    with TokenTree(env, spelled(), Plan(roots=1, max_decisions=2)) as tree:
        tree.advance([Said(letters("\ud800"), [0.0])])
        (prompt,) = tree.waiting()
        assert "half a character" in text(prompt)
    env.close()


def test_a_tree_that_lives_has_no_rows_yet(env):
    with TokenTree(env, spelled(), Plan(roots=2)) as tree, pytest.raises(RolloutTreeError):
        tree.rows()


@pytest.mark.parametrize(
    "wrong", [{"roots": 0}, {"members": 1}, {"branch_at": (0,)}, {"branch_at": (2, 2)}]
)
def test_impossible_plans_are_refused(wrong):
    with pytest.raises(ValueError, match=r"Plan\("):
        Plan(**{"roots": 1, **wrong})
