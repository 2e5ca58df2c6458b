"""Where the environment under test comes from, here and in another process."""

from __future__ import annotations

import importlib
import inspect
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from sandboxgym.core.digest import first_difference
from sandboxgym.core.errors import SandboxGymError
from sandboxgym.mechanisms import forkable

AnyEnv: TypeAlias = gym.Env[Any, Any]
Factory: TypeAlias = Callable[[], AnyEnv]

_FACTORY = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


class EnvironmentNotFoundError(SandboxGymError, LookupError):
    """No environment goes by the name that was given."""


@dataclass(frozen=True)
class Source:
    """Makes the environment under test.

    Attributes:
        name: What reports call it.
        make: Makes one.
        reference: Plain data with which another process makes the same, or None.
        obstacle: Where there is no reference, why.
        kwargs: Arguments for what makes it.
        expression: What stands for it in Python.
        arguments: What stands for it on the command line, or None where nothing does.
    """

    name: str
    make: Factory
    reference: dict[str, Any] | None = None
    obstacle: str = ""
    kwargs: dict[str, Any] = field(default_factory=dict)
    expression: str = ""
    arguments: tuple[str, ...] | None = None

    @classmethod
    def of(cls, env: str | Factory, kwargs: dict[str, Any] | None = None) -> Source:
        """The source that a name or a factory stands for.

        Args:
            env: A Gymnasium id, "module:factory", or a function that makes the environment. A
                Gymnasium environment without state hooks is made forkable by replay.
            kwargs: Arguments for `gymnasium.make` or for the factory.

        Raises:
            EnvironmentNotFoundError: There is no such id, module or factory.
        """
        kwargs = kwargs or {}
        if not isinstance(env, str):
            source = _from_factory(env, kwargs)
        elif _FACTORY.fullmatch(env):
            module, _, qualname = env.partition(":")
            reference = {"module": module, "qualname": qualname, "kwargs": kwargs}
            arguments = command_arguments(env, kwargs)
            source = cls(env, from_reference(reference), reference, arguments=arguments)
        else:
            source = _from_id(env, kwargs)
        return replace(source, kwargs=kwargs, expression=source.expression or repr(env))


def from_reference(reference: dict[str, Any]) -> Factory:
    """What a `Source.reference` stands for, in whatever process.

    Raises:
        EnvironmentNotFoundError: The module or the factory in it does not exist.
    """
    kwargs = reference["kwargs"]
    if "spec" in reference:
        spec = EnvSpec.from_json(reference["spec"])
        return lambda: forkable(gym.make(spec, **kwargs))
    factory = _load(reference["module"], reference["qualname"])
    return lambda: factory(**kwargs)


def command_arguments(name: str, kwargs: dict[str, Any]) -> tuple[str, ...] | None:
    """How the command line is told of an environment, or None where JSON cannot say it."""
    words = [name]
    for key, value in kwargs.items():
        try:
            text = json.dumps(value)
            if first_difference(value, json.loads(text)) is not None:
                return None
        except (TypeError, ValueError):
            return None
        words.append(f"{key}={text}")
    return (words[0], "--kwargs", *words[1:]) if kwargs else (name,)


def _from_factory(factory: Factory, kwargs: dict[str, Any]) -> Source:
    module = getattr(factory, "__module__", "")
    qualname = getattr(factory, "__qualname__", type(factory).__qualname__)
    owner, _, name = qualname.rpartition(".")
    expression = qualname if qualname.isidentifier() else "make_env"
    if owner.isidentifier() and inspect.ismethod(factory):
        expression = f"{owner}().{name}"
    source = Source(f"{module}:{qualname}", lambda: factory(**kwargs), expression=expression)
    try:
        found = None if module == "__main__" else _load(module, qualname)
    except (EnvironmentNotFoundError, TypeError):
        found = None
    # A method is bound anew on each access, so its function says whether it is the same.
    if getattr(found, "__func__", found) is not getattr(factory, "__func__", factory):
        return replace(
            source,
            obstacle=f"another process cannot import the factory {source.name}: give a function at "
            "the top level of a module, 'module:factory', or a Gymnasium id",
        )
    reference = {"module": module, "qualname": qualname, "kwargs": kwargs}
    return replace(source, reference=reference, arguments=command_arguments(source.name, kwargs))


def _from_id(name: str, kwargs: dict[str, Any]) -> Source:
    try:
        spec = _registered(name)
    except (gym.error.Error, ImportError, ValueError) as error:
        raise EnvironmentNotFoundError(
            f"{name!r} is neither a registered Gymnasium id ({error}) nor of the form "
            "'module:factory'; where a module registers the id when it is imported, say "
            "'module:id', or --import MODULE on the command line; `sandboxgym list` shows the ids"
        ) from error
    source = Source(name, lambda: forkable(gym.make(spec, **kwargs)))
    if spec.namespace in (None, "sandboxgym") or ":" in name:  # a new process knows the id too
        source = replace(source, arguments=command_arguments(name, kwargs))
    try:
        reference = {"spec": _portable(spec).to_json(), "kwargs": kwargs}
    except (ValueError, TypeError, EnvironmentNotFoundError) as error:
        return replace(source, obstacle=f"another process cannot be told how to make it: {error}")
    return replace(source, reference=reference)


def _registered(name: str) -> EnvSpec:
    """The spec of an id; a module before a colon is imported first, as `gymnasium.make` does."""
    module, colon, id_ = name.partition(":")
    if not colon:
        return gym.spec(name)
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise EnvironmentNotFoundError(
            f"{name!r} needs the module {module!r}, which cannot be imported ({error}): install "
            "the package that has it, if the name is right"
        ) from error
    return gym.spec(id_)


def _portable(spec: EnvSpec) -> EnvSpec:
    """A spec that names its class by module instead of holding it."""
    entry: Any = spec.entry_point
    if entry is None or isinstance(entry, str):
        return spec
    module, qualname = entry.__module__, entry.__qualname__
    _load(module, qualname)
    return replace(spec, entry_point=f"{module}:{qualname}")


def _load(module: str, qualname: str) -> Any:
    """Import a factory; a method of a class is bound to a new instance of that class."""
    try:
        found: Any = importlib.import_module(module)
        for name in qualname.split("."):
            is_method = inspect.isclass(found) and inspect.isfunction(
                inspect.getattr_static(found, name, None)
            )
            found = getattr(found() if is_method else found, name)
    except (ImportError, AttributeError, ValueError) as error:
        raise EnvironmentNotFoundError(
            f"{module}:{qualname} cannot be imported: {error}"
        ) from error
    return found
