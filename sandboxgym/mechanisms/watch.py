"""What an environment does beside its own objects while it is stepped.

A state API or a copy misses what an environment keeps elsewhere: in its class, in a module, in the
global random generators, in files, threads or processes. `Watch` looks for these while something is
done, and names them. It finds what Python can see, and no more: a C library that writes a file goes
unnoticed, which is why a probe comes after it.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import types
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np

from sandboxgym.mechanisms.fingerprint import fingerprint
from sandboxgym.mechanisms.twins import AnyEnv

_CHANGES = ("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink")
_EFFECTS = {
    "subprocess.Popen": "starts a process",
    "os.system": "starts a process",
    "os.posix_spawn": "starts a process",
    "os.fork": "starts a process",
    "os.forkpty": "starts a process",
    "_thread.start_new_thread": "starts a thread",
    "_thread.start_joinable_thread": "starts a thread",
    "socket.connect": "connects to a socket",
    "socket.bind": "listens on a socket",
    "socket.sendto": "sends to a socket",
    "sqlite3.connect": "opens a database",
}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Watch:
    """Notes what is done beside the objects of some environments, between `with` and its end.

    Attributes:
        shared: Data of classes and modules that changed, by name.
        global_draws: The global random generators that were drawn from.
        files: Files and folders that were written, moved or removed.
        outside: Threads and processes that were started, connections that were made.
    """

    def __init__(self, env: AnyEnv) -> None:
        self.shared: list[str] = []
        self.global_draws: list[str] = []
        self.files: list[str] = []
        self.outside: list[str] = []
        self._owners = list(_owners_of_shared_data(env))
        self._thread = threading.get_ident()

    def __enter__(self) -> Watch:
        """Start to watch."""
        self._data = self._shared_data()
        self._generators = _global_generators()
        _listen(self)
        return self

    def __exit__(self, *_: object) -> None:
        """Look at what is different now."""
        _watching.remove(self)
        for name, value in _global_generators().items():
            if value != self._generators[name]:
                _note(self.global_draws, name)
        data = self._shared_data()
        for name in [*self._data, *(name for name in data if name not in self._data)]:
            if data.get(name) != self._data.get(name):
                _note(self.shared, name)

    def in_words(self) -> str | None:
        """What was found, or None."""
        words = [
            *[f"it changes {name}" for name in self.shared],
            *[f"it draws from the global generator of {name}" for name in self.global_draws],
            *[f"it writes {path}" for path in self.files],
            *[f"it {effect}" for effect in self.outside],
        ]
        return ", ".join(words) or None

    def hear(self, event: str, args: tuple[Any, ...]) -> None:
        """Take note of an audit event of Python, if it is an effect outside of the memory."""
        if threading.get_ident() != self._thread:
            return
        if event == "open" and isinstance(args[0], str | bytes) and args[2] & _WRITING:
            path = os.fsdecode(args[0])
            if not path.startswith("/dev/") and "__pycache__" not in path:
                _note(self.files, path)
        elif event in _CHANGES:
            _note(self.files, os.fsdecode(args[0]))
        elif event in _EFFECTS:
            _note(self.outside, _EFFECTS[event])

    def _shared_data(self) -> dict[str, str]:
        return {
            f"{owner.__name__}.{name}": fingerprint(value)
            for owner in self._owners
            for name, value in list(vars(owner).items())
            if not name.startswith("__") and not isinstance(value, type | types.ModuleType)
        }


def _note(findings: list[str], finding: str) -> None:
    if finding not in findings:
        findings.append(finding)


def _owners_of_shared_data(env: AnyEnv) -> Iterator[Any]:
    """The classes of an environment and its wrappers, their modules, and those of its package."""
    classes = set(type(env.unwrapped).__mro__)
    while isinstance(env, gym.Wrapper):
        classes |= set(type(env).__mro__)
        env = env.env
    names = {cls.__module__ for cls in classes}
    package = type(env.unwrapped).__module__.partition(".")[0]
    if package != "gymnasium":
        names |= {name for name in sys.modules if name.split(".")[0] == package}
    for name in sorted(names - {"builtins", "typing", "abc"}):
        module = sys.modules.get(name)
        if not isinstance(module, types.ModuleType) or name.startswith("gymnasium.core"):
            continue
        yield module
        yield from (c for c in vars(module).values() if _defined_in(c, name))


def _defined_in(value: Any, module: str) -> bool:
    return isinstance(value, type) and value.__module__ == module


def _global_generators() -> dict[str, str]:
    return {
        "random": fingerprint(random.getstate()),
        "numpy.random": fingerprint(np.random.get_state()),
    }


_watching: list[Watch] = []
_listening = False


def _listen(watch: Watch) -> None:
    """Let a watch hear audit events. Python has no way to take such a hook out again."""
    global _listening
    _watching.append(watch)
    if not _listening:
        sys.addaudithook(_hear)
        _listening = True


def _hear(event: str, args: tuple[Any, ...], watching: list[Watch] = _watching) -> None:
    for watch in watching:  # bound at definition: the hook outlives the module at exit
        watch.hear(event, args)
