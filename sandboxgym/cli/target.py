"""The environment that a command is about: the arguments that name it, and making it."""

from __future__ import annotations

import argparse
import importlib
import json
from typing import Any

import gymnasium as gym

from sandboxgym.cli.outcome import UnusableInputError
from sandboxgym.conformance.source import AnyEnv, Source
from sandboxgym.core.errors import SandboxGymError
from sandboxgym.mechanisms import forkable


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add ENV, `--kwargs` and `--import`."""
    command.add_argument("env", metavar="ENV", help="a Gymnasium id, module:id, or module:factory")
    command.add_argument(
        "--kwargs",
        nargs="+",
        action="extend",
        type=_assignment,
        default=[],
        metavar="NAME=VALUE",
        help="arguments of the environment; a value is JSON, or else text",
    )
    add_import(command)


def add_import(command: argparse.ArgumentParser) -> None:
    """Add `--import`, for ids that a module registers when it is imported."""
    command.add_argument(
        "--import",
        dest="imports",
        action="append",
        default=[],
        metavar="MODULE",
        help="import MODULE first, which registers its environments (may be given again)",
    )


def import_modules(options: argparse.Namespace) -> None:
    """Import what `--import` names.

    Raises:
        UnusableInputError: A module cannot be imported.
    """
    for name in options.imports:
        try:
            importlib.import_module(name)
        except Exception as error:
            raise UnusableInputError(
                f"--import {name} failed ({type(error).__name__}): {error}"
            ) from error


def source_of(options: argparse.Namespace) -> Source:
    """The environment that the arguments name.

    Raises:
        UnusableInputError: A module of `--import` cannot be imported.
        EnvironmentNotFoundError: There is no such environment.
    """
    import_modules(options)
    return Source.of(options.env, dict(options.kwargs))


def make(source: Source) -> AnyEnv:
    """Make the environment.

    Raises:
        UnusableInputError: It cannot be made, or what was made is no environment.
    """
    try:
        env = source.make()
    except Exception as error:
        raise UnusableInputError(
            f"{source.name} cannot be made ({type(error).__name__}): {error}"
        ) from error
    if not isinstance(env, gym.Env):
        raise UnusableInputError(
            f"{source.name} returned {_described(env)}, which is no gymnasium.Env: give a "
            "function or class that returns an environment"
        )
    return env


def make_forkable(source: Source) -> AnyEnv:
    """Make the environment, by whatever mechanism captures it where it has no hooks of its own.

    Raises:
        UnusableInputError: It cannot be made, or no mechanism captures it.
    """
    env = make(source)
    try:
        return forkable(env, factory=source.make)
    except SandboxGymError as error:
        env.close()
        raise UnusableInputError(f"{source.name} cannot be forked: {error}") from error


def positive(text: str) -> int:
    """An argument that counts something, at least one."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is less than 1")
    return value


def _described(value: object) -> str:
    return "None" if value is None else f"an object of type {type(value).__name__}"


def _assignment(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value
