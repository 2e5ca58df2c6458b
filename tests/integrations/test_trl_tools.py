"""A sandbox as tools: what TRL would find on it, and what the tools do."""

from __future__ import annotations

import inspect

import gymnasium as gym
import pytest

import sandboxgym as sg  # noqa: F401 - registers the sandboxes
from sandboxgym.core.errors import InvalidActionError
from sandboxgym.integrations.trl.tools import sandbox_tools


def make():
    return gym.make(
        "sandboxgym/ALFWorld-v0", source="synthetic", difficulty="easy", expert_plan=True
    )


def plan(tools) -> list[str]:
    return tools._env.unwrapped.expert()


@pytest.mark.parametrize(("undo", "names"), [(False, {"act"}), (True, {"act", "undo"})])
def test_nothing_but_tools_is_public(undo, names):
    tools = sandbox_tools(make, undo=undo)()
    public = {
        name
        for name, _ in inspect.getmembers(type(tools), inspect.isfunction)
        if not name.startswith("_")
    }
    assert public == names | {"reset", "get_reward"}
    on_instance = {name for name in dir(tools) if not name.startswith("_")}
    assert on_instance == public


def test_a_row_says_how_to_reset_and_the_rest_of_it_is_left_alone():
    tools = sandbox_tools(make)()
    row = {"prompt": [{"role": "user", "content": "hello"}], "answer": 42}
    first = tools.reset(**row, seed=3)
    assert "Your task is to" in first
    assert tools.reset(**row, seed=3) == first
    assert tools.reset(**row, seed=None, options={"index": 0}) == tools.reset(options={"index": 0})


def test_the_reward_is_that_of_the_episode():
    tools = sandbox_tools(make)()
    tools.reset(seed=3)
    for command in plan(tools):
        assert tools.get_reward() == 0
        tools.act(command=command)
    assert tools.get_reward() == 1
    assert "ended" in tools.act("look")
    tools.reset(seed=3)
    assert tools.get_reward() == 0


def test_undo_takes_back_the_command_and_its_reward():
    tools = sandbox_tools(make, undo=True)()
    start = tools.reset(seed=3)
    assert "nothing to take back" in tools.undo()
    seen = [start]
    for command in plan(tools):
        seen.append(tools.act(command))
    assert tools.get_reward() == 1
    assert "ended" in tools.act("look")  # does nothing, so there is nothing of it to take back
    digests = []
    for before in reversed(seen[:-1]):
        assert tools.undo() == before
        assert tools.get_reward() == 0
        digests.append(tools._env.state_digest())
    tools.reset(seed=3)
    assert tools._env.state_digest() == digests[-1]
    assert "nothing to take back" in tools.undo()


def test_after_an_undo_the_world_goes_on_as_if_nothing_had_been():
    tools = sandbox_tools(make, undo=True)()
    tools.reset(seed=3)
    tools.act("look")
    tools.undo()
    for command in plan(tools):
        tools.act(command)
    assert tools.get_reward() == 1


def test_what_takes_no_text_is_refused():
    with pytest.raises(InvalidActionError, match="wrapper"):
        sandbox_tools(lambda: gym.make("CartPole-v1"))()
