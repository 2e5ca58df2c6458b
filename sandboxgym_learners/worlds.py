"""The worlds that the learner trains in: making environments, their tasks, their walkthroughs.

A world is any Gymnasium environment that `sandboxgym` can fork, whose observations are text and
whose info lists the commands that it admits. Task number i is what `reset(seed=i,
options={"index": i})` starts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from sandboxgym_learners.faces import TEXT, Face, WorldError, face_of
from sandboxgym_learners.policy import Query
from sandboxgym_learners.prompts import Episode, PromptFormat

TextEnv = gym.Env[str, str]
Arguments = tuple[str, ...]
"""Arguments of an environment, each "name=value"; JSON such as 64, true or [1, 2] is read as it."""


@dataclass(frozen=True)
class WorldConfig:
    """Which environment, and which of its tasks are for what.

    Attributes:
        env: Its Gymnasium id, "module:namespace/Name-v0" where a module has to be imported first.
        arguments: Given to `gymnasium.make` for training and evaluation alike.
        train: Further ones for training.
        held_out: Further ones for evaluation.
        expert: Further ones that make a training environment put `expert_plan` into its info.
        train_tasks: Training draws from tasks 0 to this.
        eval_tasks: Evaluation plays each of tasks 0 to this,
        eval_episodes: so many times.
        horizon: Steps after which an episode is cut off; None for the environment's own limit.
        workers: Processes that step training environments at once; 0 to step them in this one,
            which is best where a step takes microseconds.
        lanes: Environments in these processes.
    """

    env: str = "sandboxgym/ALFWorld-v0"
    arguments: Arguments = ("source=synthetic", "difficulty=easy")
    train: Arguments = ("split=train",)
    held_out: Arguments = ("split=valid_seen",)
    expert: Arguments = ("expert_plan=true",)
    train_tasks: int = 100
    eval_tasks: int = 60
    eval_episodes: int = 1
    horizon: int | None = None
    workers: int = 0
    lanes: int = 64

    @property
    def face(self) -> Face:
        """How the learner talks to it."""
        return face_of(self.env)

    def make_train(self) -> TextEnv:
        """A new environment with training tasks."""
        return self._make(self.train)

    def make_held_out(self) -> TextEnv:
        """A new environment with held-out tasks."""
        return self._make(self.held_out)

    def make_expert(self) -> TextEnv:
        """A new environment with training tasks that tells how to solve them."""
        return self._make(self.train + self.expert)

    def _make(self, further: Arguments) -> TextEnv:
        arguments = dict(_pair(text) for text in self.arguments + further)
        if self.horizon is not None:
            arguments["max_episode_steps"] = self.horizon
        try:
            return gym.make(self.env, **arguments)
        except (gym.error.Error, ModuleNotFoundError, TypeError) as error:
            raise WorldError(f"{self.env} cannot be made with {arguments}: {error}") from error


def _pair(argument: str) -> tuple[str, Any]:
    name, equals, text = argument.partition("=")
    if not equals:
        raise WorldError(f"the argument {argument!r} of an environment is not name=value")
    try:
        return name, json.loads(text)
    except ValueError:
        return name, text


class Demonstration(NamedTuple):
    """One decision of an expert."""

    query: Query
    choice: int


def start(env: TextEnv, task: int, face: Face = TEXT) -> tuple[Episode, dict[str, Any]]:
    """Begin a task."""
    observation, info = env.reset(seed=task, options=face.options(task))
    return face.begin(observation, info), info


def commands(info: dict[str, Any]) -> tuple[str, ...]:
    """The commands that an environment admits now."""
    admitted = info.get("admissible_commands")
    if not admitted:
        raise WorldError(
            'the environment admits no command: info["admissible_commands"] has to be a list of '
            "at least one str at every step of an episode"
        )
    return tuple(admitted)


def demonstrations(
    env: TextEnv,
    tasks: Iterable[int],
    form: PromptFormat,
    face: Face = TEXT,
    *,
    detour: int = 0,
    seed: int = 0,
) -> Iterator[Demonstration]:
    """The decisions of an expert on some tasks, in order.

    Args:
        env: An environment that gives `expert_plan`.
        tasks: Numbers of tasks.
        form: How the expert's situation is put into words.
        face: How to talk to the environment.
        detour: Before the expert takes over, up to so many random actions are taken. Without them
            the policy would never meet what no walkthrough passes through.
        seed: Decides the detours.
    """
    dice = np.random.default_rng(seed)
    for task in tasks:
        episode, info = start(env, task, face)
        wander = int(dice.integers(detour + 1))
        plan: list[str] = []
        ended = False
        while not ended:
            admitted = commands(info)
            query = Query(episode.prompt(form), admitted)
            if len(episode.actions) < wander:
                action = admitted[int(dice.integers(len(admitted)))]
            else:
                plan = plan or _plan(info, admitted, task)
                action = plan.pop(0)
                yield Demonstration(query, admitted.index(action))
            observation, _, terminated, truncated, info = env.step(face.act(action))
            episode = episode.after(action, face.see(observation))
            ended = terminated or truncated


def _plan(info: dict[str, Any], admitted: Sequence[str], task: int) -> list[str]:
    if "expert_plan" not in info:
        raise WorldError(
            "behaviour cloning follows info['expert_plan'], which this environment does not give: "
            "set the arguments that switch it on (--world.expert), or do without cloning "
            "(--cloning.steps 0)"
        )
    plan = list(info["expert_plan"])
    if not plan or plan[0] not in admitted:
        raise WorldError(f"task {task}: the expert's plan {plan} does not begin with a command")
    return plan


def sample_texts(
    env: TextEnv,
    tasks: Iterable[int],
    form: PromptFormat,
    face: Face = TEXT,
    *,
    seed: int,
    steps: int = 20,
) -> list[str]:
    """Prompts and commands as random actions meet them: material for a vocabulary."""
    dice = np.random.default_rng(seed)
    texts: list[str] = []
    for task in tasks:
        episode, info = start(env, task, face)
        for _ in range(steps):
            admitted = commands(info)
            texts += [episode.prompt(form), *admitted]
            action = admitted[int(dice.integers(len(admitted)))]
            observation, _, terminated, truncated, info = env.step(face.act(action))
            if terminated or truncated:
                break
            episode = episode.after(action, face.see(observation))
    return texts
