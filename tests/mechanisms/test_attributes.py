from __future__ import annotations

import functools
import random

import numpy as np
import pytest
from gymnasium import spaces

from sandboxgym.core import errors
from sandboxgym.core.codec import encode
from sandboxgym.core.digest import first_difference
from sandboxgym.mechanisms.attributes import Attributes
from sandboxgym.mechanisms.native import NativeEnv

from .broken import Slotted, Visits, Walk

API = Attributes()


def walk(**attributes):
    env = Walk()
    env.reset(seed=1)
    for name, value in attributes.items():
        setattr(env, name, value)
    return env


def moved(env, into):
    """Put the state of one environment into another."""
    API.set(into, API.get(env))
    return into


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (Visits(), "Visits"),
        ({1, 2}, "set"),
        ([np.array([None])], "object"),
        ({"deep": [object()]}, r"lost\['deep'\]\[0\]"),
        (open("/dev/null"), "TextIOWrapper"),  # noqa: SIM115, PTH123
        (functools.partial(int, "3"), "partial"),
        (Visits().__init__, "a method of another object"),
        ((lambda seen: lambda: seen)([]), "variables of its own"),
        (np.frombuffer(bytearray(8), np.uint8), "memory that something else holds"),
    ],
)
def test_what_it_cannot_capture_it_refuses_by_name(value, fault):
    env = walk(lost=value)
    assert "lost" in API.refuse(env)
    with pytest.raises(errors.UncapturedStateError, match=fault):
        API.get(env)


def test_slots_are_refused():
    assert "__slots__" in API.refuse(Slotted())


def test_what_is_left_alone_is_neither_captured_nor_set():
    class LeavesTrail(Attributes):
        left_alone = frozenset({"trail"})

    env, other = walk(trail=Visits()), walk(trail="mine")
    api = LeavesTrail()
    assert api.refuse(env) is None
    api.set(other, api.get(env))
    assert other.trail == "mine"


def test_attributes_come_and_go():
    env, other = walk(found=[1]), walk(lost=2)
    moved(env, other)
    assert other.found == [1]
    assert not hasattr(other, "lost")


def test_a_state_is_set_into_an_instance_that_was_never_reset():
    env = walk(position=4.5)
    fresh = Walk()
    moved(env, fresh)
    assert fresh.position == 4.5


def test_one_object_under_two_names_stays_one():
    shared = [1]
    env = walk(one=shared, other=shared)
    twin = NativeEnv(Walk(), Attributes())
    twin.set_state(API.get(env))
    assert twin.one is twin.other
    assert twin.one is not shared


@pytest.mark.parametrize(
    "attributes",
    [
        (lambda inner: {"one": inner, "other": [inner]})([1]),
        (lambda array: {"one": array, "other": array[1:]})(np.zeros(4)),
        (lambda array: {"one": array[:2], "other": array[2:]})(np.zeros(4)),
        {"one": (lambda inner: [inner, inner])([1])},
    ],
)
def test_a_shared_part_is_refused(attributes):
    with pytest.raises(errors.UncapturedStateError, match="share one"):
        API.get(walk(**attributes))


@pytest.mark.parametrize(
    "make",
    [np.random.default_rng, np.random.RandomState, random.Random],
)
def test_generators_of_its_own_are_captured(make):
    env, other = walk(own=make(3)), walk(own=make(4))
    env.own.random()
    moved(env, other)
    assert env.own.random() == other.own.random()
    assert env.own is not other.own


def test_another_name_of_the_generator_stays_one():
    class Renamed(Walk):
        def reset(self, *, seed=None, options=None):
            result = super().reset(seed=seed)
            self.rng = self.np_random
            return result

    env, fresh = NativeEnv(Renamed(), Attributes()), NativeEnv(Renamed(), Attributes())
    env.reset(seed=1)
    fresh.restore(env.snapshot())
    assert fresh.rng is fresh.np_random
    assert fresh.rng is not env.rng
    assert fresh.rng.random() == env.rng.random()


def test_two_generators_on_one_bit_generator_are_refused():
    env = walk()
    env.rng = np.random.Generator(env.np_random.bit_generator)
    with pytest.raises(errors.UncapturedStateError, match="share one"):
        API.get(env)


def test_a_constant_that_is_another_one_here_is_refused():
    env, other = walk(rule=max), walk(rule=min)
    with pytest.raises(
        errors.UncapturedStateError, match=r"Walk\.rule is .*min.* here and was .*max"
    ):
        moved(env, other)
    moved(env, walk(rule=max))


def test_a_space_that_changed_its_bounds_is_another_one():
    env, other = walk(), walk()
    env.observation_space = spaces.Box(-1, 1, (2,), np.float64)
    with pytest.raises(errors.UncapturedStateError, match="observation_space"):
        moved(env, other)


def test_a_third_space_that_is_drawn_from_is_refused():
    extra = spaces.Discrete(9)
    assert API.refuse(walk(extra=extra)) is None
    extra.sample()
    assert "extra" in API.refuse(walk(extra=extra))


def test_an_object_that_appears_later_is_refused_then():
    class Drawn(Walk):
        def render(self):
            self.screen = Visits()

    env = NativeEnv(Drawn(), Attributes())
    env.reset(seed=1)
    before = env.snapshot()
    env.render()
    with pytest.raises(errors.UncapturedStateError, match=r"Drawn\.screen"):
        env.snapshot()
    with pytest.raises(errors.UncapturedStateError, match=r"Drawn\.screen"):
        env.restore(before)


def test_the_state_is_plain_data_that_stays_as_it_was():
    env = walk(table={"a": [1]})
    native = NativeEnv(env, Attributes())
    native.reset(seed=1)
    snap = native.snapshot()
    kept = snap.digest
    env.table["a"].append(2)
    assert native.state_digest() != kept
    native.restore(snap)
    assert native.state_digest() == kept
    assert first_difference(env.table, {"a": [1]}) is None


def test_the_limits_of_a_large_picture_take_little_room():
    env = walk(screen=spaces.Box(0, 255, (600, 800, 3), np.uint8))
    assert len(encode(API.get(env))) < 10_000
    assert len(encode(API.get(walk(screen=spaces.Box(0, 1, (600, 800, 3)))))) < 10_000


def test_a_space_with_other_limits_is_another_constant():
    low = np.zeros((4, 4), np.float32)
    env, other = (walk(screen=spaces.Box(low, low + high)) for high in (1, 2))
    with pytest.raises(errors.UncapturedStateError, match="screen"):
        moved(env, other)
