"""A tree as one row a segment, and trees that are grown from a coroutine."""

from __future__ import annotations

import asyncio
import random
import threading

import gymnasium as gym
import pytest

from sandboxgym.integrations.apart import grow_apart
from sandboxgym.integrations.growth import Plan
from sandboxgym.integrations.pieces import most_pieces, pieces
from tests.integrations.scripted import drawn, spelled

PLAN = Plan(roots=2, branch_at=(1, 3), members=2, max_decisions=4)


def make():
    return gym.make("sandboxgym/ALFWorld-v0", source="synthetic", difficulty="easy")


def grow(generate, plan: Plan = PLAN, make=make):
    return asyncio.run(grow_apart(make, {"seed": 3}, spelled(), plan, generate))


def drawing(seed: int = 0):
    rng = random.Random(seed)

    async def generate(prompts):
        return drawn(prompts, rng)

    return generate


def test_every_segment_is_a_row_and_no_token_is_in_two():
    rows = grow(drawing())
    found = pieces(rows)
    assert len(rows) == PLAN.most_leaves == 8
    assert len(found) == most_pieces(PLAN) == 2 + 4 + 8
    whole = {tuple(row.prompt + row.tokens) for row in rows}
    assert {tuple(piece.prompt + piece.tokens) for piece in found[-8:]} == whole
    assert sum(sum(piece.mask) for piece in found) < sum(sum(row.mask) for row in rows)


def test_a_piece_has_the_credit_of_its_segment_in_the_row_that_carries_it():
    rows = grow(drawing(1))
    numbered = [
        row._replace(credits=[float(i)] * len(row.tokens)) for i, row in enumerate(rows)
    ]  # random play wins nothing, and all credits are 0
    assert {piece.credit for piece in pieces(rows)} == {0.0}
    assert [piece.credit for piece in pieces(numbered)[-8:]] == [0, 1, 2, 3, 4, 5, 6, 7]
    assert [piece.credit for piece in pieces(numbered)[:6]] == [0, 4, 0, 2, 4, 6]


def test_the_environment_lives_in_one_thread_that_is_not_the_callers():
    threads = set()

    def making():
        threads.add(threading.get_ident())
        return make()

    ticks = 0

    async def generate(prompts):
        nonlocal ticks
        ticks += 1
        assert threading.get_ident() not in threads
        return drawn(prompts, random.Random(ticks))

    assert len(grow(generate, make=making)) == 8
    assert len(threads) == 1
    assert ticks == 4


def test_what_fails_closes_the_environment():
    closed = []

    def making():
        env = make()
        close = env.close
        env.close = lambda: (closed.append(True), close())
        return env

    async def generate(prompts):
        raise RuntimeError("no model")

    with pytest.raises(RuntimeError, match="no model"):
        grow(generate, make=making)
    assert closed == [True]
