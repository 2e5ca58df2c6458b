from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from sandboxgym.cli.play.actions import Palette
from sandboxgym.cli.play.timeline import PlayError

BOX = spaces.Box(-1, 2, (2,), np.float32)
NESTED = spaces.Dict(
    {"arm": BOX, "say": spaces.Text(9), "hands": spaces.Tuple([spaces.Discrete(3)] * 2)}
)


def labels(palette, info=None):
    return [choice.label for choice in palette.choices(info or {})]


@pytest.mark.parametrize("name", ["admissible_commands", "valid_actions"])
def test_a_text_space_offers_the_commands_in_the_info(name):
    palette = Palette(spaces.Text(20))
    assert palette.free
    assert labels(palette, {name: ["look", "go left"]}) == ["look", "go left"]
    assert labels(palette, {name: []}) == []


def test_a_discrete_space_offers_its_values_by_their_meaning():
    palette = Palette(spaces.Discrete(3, start=1), ["NOOP", "FIRE", "LEFT"])
    assert labels(palette) == ["1 NOOP", "2 FIRE", "3 LEFT"]
    chosen = palette.choices({})[2].action
    assert chosen == 3
    assert palette.space.contains(chosen)


def test_a_mask_takes_values_away():
    palette = Palette(spaces.Discrete(3))
    assert labels(palette, {"action_mask": np.array([1, 0, 1], np.int8)}) == ["0", "2"]


def test_a_large_discrete_space_offers_a_sample():
    (label,) = labels(Palette(spaces.Discrete(10_000)))
    assert label.startswith("random: ")


def test_a_box_offers_its_ends_and_a_sample():
    offered = Palette(BOX).choices({})
    assert [choice.label.partition(":")[0] for choice in offered] == [
        "zeros",
        "lowest",
        "highest",
        "random",
    ]
    assert all(BOX.contains(choice.action) for choice in offered)


def test_an_unbounded_box_offers_no_infinite_end():
    offered = Palette(spaces.Box(-np.inf, np.inf, (1,))).choices({})
    assert [choice.label.partition(":")[0] for choice in offered] == ["zeros", "random"]


def test_samples_leave_the_generator_of_the_environment_alone():
    space = spaces.Box(0, 1, (3,), seed=4)
    twin = spaces.Box(0, 1, (3,), seed=4)
    palette = Palette(space)
    palette.choices({})
    assert np.array_equal(space.sample(), twin.sample())


@pytest.mark.parametrize(
    ("space", "text", "action"),
    [
        (spaces.Text(9, charset="go lefty"), "go  left", "go  left"),
        (spaces.Discrete(3), " 2 ", 2),
        (spaces.MultiDiscrete([3, 2]), "2, 1", [2, 1]),
        (spaces.MultiDiscrete([[3, 2], [4, 4]]), "2 1 3 0", [[2, 1], [3, 0]]),
        (spaces.MultiBinary(3), "[1 0 1]", [1, 0, 1]),
        (BOX, "-0.5 2", [-0.5, 2.0]),
    ],
)
def test_typed_text_is_read(space, text, action):
    read = Palette(space).parse(text)
    assert np.array_equal(read, action)
    assert space.contains(read)


def test_a_nested_action_is_typed_as_json():
    read = Palette(NESTED).parse('{"arm": [0, 1], "say": "yes", "hands": [0, 2]}')
    assert NESTED.contains(read)
    assert read["hands"] == (0, 2)


@pytest.mark.parametrize(
    ("space", "text", "reason"),
    [
        (spaces.Discrete(3), "5", "a whole number from 0 to 2"),
        (spaces.Discrete(3), "", "a whole number from 0 to 2"),
        (spaces.Discrete(3), "left", "a whole number from 0 to 2"),
        (spaces.MultiDiscrete([3, 2]), "1", "1 numbers instead of 2.*out of 0-2 0-1"),
        (spaces.MultiDiscrete([3, 2]), "1 2", "out of 0-2 0-1"),
        (spaces.MultiBinary(2), "1 9", "each 0 or 1"),
        (spaces.MultiBinary(2), "1 900", "each 0 or 1"),
        (BOX, "0 3", "2 numbers from -1 to 2"),
        (BOX, "0 nan", "2 numbers from -1 to 2"),
        (BOX, "0 x", "could not convert"),
        (NESTED, "{", "JSON"),
        (NESTED, "[1]", "JSON"),
        (NESTED, '{"arm": [0, 1], "say": "yes"}', "JSON"),
        (spaces.Graph(BOX, None), "{}", "a Graph cannot be typed"),
    ],
)
def test_what_is_no_action_is_refused_with_what_would_be(space, text, reason):
    with pytest.raises(PlayError, match=reason):
        Palette(space).parse(text)


@pytest.mark.parametrize("name", ["CartPole-v1", "FrozenLake-v1", "Pendulum-v1"])
def test_every_offer_is_an_action_of_the_real_environment(name):
    env = gym.make(name)
    env.reset(seed=0)
    offered = Palette(env.action_space).choices({})
    assert offered
    for choice in offered:
        assert env.action_space.contains(choice.action)
