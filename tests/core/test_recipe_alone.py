"""`recipe_of` and `reseed`: what is needed to keep a moment of an episode small, and to redo it."""

from __future__ import annotations

import pytest

import sandboxgym as sg
from sandboxgym.core import forking
from sandboxgym.core.errors import NotResetError
from tests.pool.toys import Walk, limited_walk, plain


def test_a_recipe_alone_brings_an_environment_there():
    env = limited_walk()
    env.reset(seed=1)
    env.step(1)
    recipe = forking.recipe_of(env)
    assert recipe.state is None
    other = limited_walk()
    sg.restore(other, recipe)
    assert plain(other.step(1)) == plain(env.step(1))
    assert other.unwrapped.metrics["replayed_steps"] == 1


def test_a_recipe_holds_nothing_alive():
    class Held(Walk):
        def hold(self):
            raise AssertionError("it was asked to keep a state alive")

    env = Held()
    env.reset(seed=1)
    forking.recipe_of(env)


def test_reseeding_is_what_a_restore_with_a_seed_does():
    ways = []
    for by_restore in (True, False):
        env = limited_walk()
        env.reset(seed=1)
        env.step(1)
        if by_restore:
            sg.restore(env, sg.snapshot(env), seed=9)
        else:
            forking.reseed(env, 9)
        env.step(0)
        again = limited_walk()
        sg.restore(again, sg.snapshot(env).drop_state())
        ways.append(plain([env.step(0) for _ in range(4)]))
        assert plain([again.step(0) for _ in range(4)]) == ways[-1]
    assert ways[0] == ways[1]


def test_both_need_an_episode():
    for function in (forking.recipe_of, lambda env: forking.reseed(env, 1)):
        with pytest.raises(NotResetError):
            function(limited_walk())
