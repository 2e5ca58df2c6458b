"""The program of a worker process: it holds the environment and answers the owner's questions.

One question matters here: `fork`. The process copies itself; the copy answers on a connection of
its own. A template is a worker that nobody asks for anything else any more.
"""

from __future__ import annotations

import contextlib
import gc
import os
import random
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, TypeAlias

import cloudpickle
import gymnasium as gym
import numpy as np

from sandboxgym.core.digest import digest
from sandboxgym.core.errors import StateEncodingError, UncapturedStateError
from sandboxgym.core.rng import reseed_generator
from sandboxgym.core.wrappers import name_of
from sandboxgym.mechanisms.process import descriptors, guard
from sandboxgym.mechanisms.process.failure import describe
from sandboxgym.mechanisms.process.scratch import Scratch
from sandboxgym.mechanisms.process.wire import Connection
from sandboxgym.mechanisms.process.writes import WriteWatch
from sandboxgym.mechanisms.twins import settings_of

Inode: TypeAlias = tuple[int, int] | None


def run(connection: Connection, scratch: Scratch, factory: bytes) -> NoReturn:
    """Build the environment, say how that went, and answer until the owner leaves."""
    standard = {number: _inode(number) for number in (0, 1, 2)}
    try:
        scratch.prepare()
        watch = WriteWatch(scratch.path)
        env = cloudpickle.loads(factory)()
        watch.forget()
        # What is there now lives as long as the process; collections need not look at it again,
        # which would give each fork a copy of every page of it.
        gc.collect()
        gc.freeze()
    except BaseException as error:  # noqa: BLE001 - it is reported, whatever it is
        connection.send({"error": describe(error)})
        os._exit(1)
    connection.send({"seen": "", "layers": _layers(env), "settings": settings_of(env)})
    Worker(env, connection, scratch, watch, standard).serve()


class Worker:
    """The environment in this process, and the connection to its owner.

    Attributes:
        seen: Hash of all that the environment returned since its reset.
        standard: The descriptors 0, 1 and 2 as they were before the environment was built.
        checked: Whether nothing ran since a check found all of it forkable.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        connection: Connection,
        scratch: Scratch,
        watch: WriteWatch,
        standard: dict[int, Inode],
    ) -> None:
        self.env = env
        self.connection = connection
        self.scratch = scratch
        self.watch = watch
        self.seen = ""
        self.checked = False
        self.standard = standard
        self.answers: dict[str, Callable[..., Any]] = {
            "reset": self.reset,
            "step": self.step,
            "reseed": self.reseed,
            "render": self.env.render,
            "close": self.env.close,
        }

    def serve(self) -> NoReturn:
        """Answer questions until the owner hangs up or is gone."""
        while True:
            try:
                message = self.connection.receive()
                if message.descriptor is not None:
                    self.fork(Connection.of(message.descriptor))
                else:
                    self.answer(message.body)
            except (EOFError, ConnectionError):
                break
        _flush()
        os._exit(0)  # without the clean-up at exit: all forks share what that would clean

    def answer(self, question: dict[str, Any]) -> None:
        """Do what is asked and send the result, or the exception that it ended with."""
        self.checked = False
        try:
            result = self.answers[question["ask"]](*question["args"])
        except BaseException as error:  # noqa: BLE001 - it is raised again in the owner
            self.connection.send({"error": describe(error)})
            return
        try:
            self.connection.send({"result": result, "seen": self.seen})
        except StateEncodingError as error:
            self.connection.send({"error": describe(error)})

    def reset(self, seed: int, options: dict[str, Any] | None) -> Any:
        """Reset the environment; what it returns starts the hash of all that was seen."""
        obs, info = self.env.reset(seed=seed, options=options)
        self.seen = digest([obs, info])
        return obs, info

    def step(self, action: Any) -> Any:
        """Step the environment; what it returns joins the hash."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        self.seen = digest([self.seen, action, obs, reward, terminated, truncated, info])
        return obs, reward, terminated, truncated, info

    def reseed(self, seed: int) -> None:
        """Start the environment's generator anew."""
        reseed_generator(self.env.unwrapped, seed)
        self.seen = digest([self.seen, "reseed", seed])

    def fork(self, connection: Connection) -> None:
        """Become two processes; the new one has `connection`, and says there that it is ready.

        The new process is a grandchild whose parent has ended, so the nursery inherits it, and
        this one never has a child to wait for.
        """
        try:
            files = self.check(connection)
            generators = random.getstate(), np.random.get_state()
            _flush()
            with _no_signal_of_children():
                child = _fork()
                if child == 0:
                    _leave_to_a_second_fork()
                else:
                    orphaned = os.waitpid(child, 0)[1] == 0
        except UncapturedStateError as error:
            connection.close()
            self.connection.send({"error": describe(error)})
            return
        if child != 0:
            connection.close()
            self.connection.send({"result": orphaned, "seen": self.seen})
            return
        self.connection.close()
        self.connection = connection
        connection.send({"pid": os.getpid()})
        try:
            self.scratch.copy()
            descriptors.open_anew(files, self.scratch)
        except (OSError, UncapturedStateError) as error:
            connection.send({"error": describe(error)})
            os._exit(1)
        # Python gives the module `random` a new seed in a fork; no library shall do so for numpy's.
        random.setstate(generators[0])
        np.random.set_state(generators[1])
        connection.send({"seen": self.seen})

    def check(self, connection: Connection) -> list[descriptors.OpenFile]:
        """Refuse to fork what a fork would not copy; returns the files to be opened anew."""
        if not self.checked:
            guard.check_process()
            self.watch.check()
            self.scratch.check()
            self.checked = True
        own = {n for n, inode in self.standard.items() if _inode(n) == inode}
        own |= {self.connection.fileno(), connection.fileno(), self.scratch.namespace or 0}
        return descriptors.look(self.scratch, own)


def _layers(env: gym.Env[Any, Any]) -> list[str]:
    """Names of the wrappers, outermost first, and of the environment inside."""
    names = [name_of(env)]
    while isinstance(env, gym.Wrapper):
        env = env.env
        names.append(name_of(env))
    return names


def _fork() -> int:
    try:
        return os.fork()
    except OSError as error:
        raise UncapturedStateError(
            f"the system refused another process ({error.strerror}): raise its limits on processes "
            "and memory, or keep fewer snapshots"
        ) from error


def _leave_to_a_second_fork() -> None:
    try:
        if os.fork() != 0:
            os._exit(0)
    except OSError:
        os._exit(1)


@contextlib.contextmanager
def _no_signal_of_children() -> Iterator[None]:
    """Keep the end of a process of ours from the environment's own handler."""
    handler = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGCHLD, handler)


def _inode(number: int) -> Inode:
    try:
        status = os.fstat(number)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _flush() -> None:
    """Write out what is printed, so that a fork does not print it once more."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with contextlib.suppress(OSError, ValueError):  # nobody reads it, or it was closed
                stream.flush()
