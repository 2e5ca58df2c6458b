"""Faults that show only after the probe, and in the code before."""

from __future__ import annotations

import random
from random import randint

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from numpy.random import normal

import sandboxgym as sg
from sandboxgym.mechanisms.reading import shared_by_its_code

COUNT = 0
LATE = 1000


class Clean(gym.Env):
    """Reads what its class shares and draws from its own generator."""

    table = [3, 1, 2]
    action_space = spaces.Discrete(2)
    observation_space = spaces.Box(-np.inf, np.inf, (), np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return np.float64(0), {}

    def step(self, action):
        self.t += 1
        row = np.zeros(3)
        row[0] = self.table[self.t % 3]
        other = np.random.default_rng(7).normal()
        late = self.late() if self.t > LATE else 0.0
        return np.float64(row.sum() + other + late + self.np_random.normal()), 0.0, False, False, {}

    def late(self):
        return 0.0


class AssignsAGlobal(Clean):
    def late(self):
        global COUNT
        COUNT += 1
        return COUNT


class DrawsFromNumpy(Clean):
    def late(self):
        return np.random.random()


class DrawsInAnInnerFunction(Clean):
    def late(self):
        return sum(np.random.normal(0, scale) for scale in (1.0, 2.0))


class DrawsByAnImportedName(Clean):
    def late(self):
        return normal()


class DrawsFromPython(Clean):
    def late(self):
        return random.random()


class DrawsFromPythonByAnImportedName(Clean):
    def late(self):
        return randint(1, 6)


class AppendsToItsClass(Clean):
    def late(self):
        self.table.append(4)
        return 0.0


class AssignsInItsClass(Clean):
    def late(self):
        type(self).table[0] = 9
        return 0.0


class CountsInItsClass(Clean):
    @property
    def counted(self):
        self.table[0] += 1
        return self.table[0]


@pytest.mark.parametrize(
    ("cls", "finding"),
    [
        (AssignsAGlobal, "AssignsAGlobal.late assigns the global COUNT"),
        (DrawsFromNumpy, "calls numpy.random.random"),
        (DrawsInAnInnerFunction, "calls numpy.random.normal"),
        (DrawsByAnImportedName, "calls normal"),
        (DrawsFromPython, "uses the module random"),
        (DrawsFromPythonByAnImportedName, "calls randint"),
        (AppendsToItsClass, "late changes AppendsToItsClass.table"),
        (AssignsInItsClass, "late changes AssignsInItsClass.table"),
        (CountsInItsClass, "counted changes CountsInItsClass.table"),
    ],
)
def test_what_code_may_do_beside_its_own_objects_is_found(cls, finding):
    assert finding in shared_by_its_code(cls())


def test_code_that_does_nothing_of_the_kind_is_left_alone():
    assert shared_by_its_code(Clean()) is None


@pytest.mark.parametrize("name", ["CartPole-v1", "Acrobot-v1", "Pendulum-v1", "Blackjack-v1"])
def test_environments_of_gymnasium_are_left_alone(name):
    assert shared_by_its_code(gym.make(name)) is None


def test_a_fault_too_late_for_the_probe_is_not_captured_natively():
    env = sg.forkable(AssignsAGlobal(), factory=AssignsAGlobal)
    try:
        assert env.choice.mechanism == "process"
        assert "assigns the global COUNT" in str(env.choice)
    finally:
        env.close()
