"""An environment that does to its own process what the action says."""

from __future__ import annotations

import gc
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from sandboxgym.mechanisms.process import ProcessEnv


class TeapotError(Exception):
    """An exception that only this module knows."""


class Lab(gym.Env[Any, Any]):
    observation_space = gym.spaces.Text(100_000)
    action_space = gym.spaces.Text(1000)

    def __init__(self, built: str = "") -> None:
        self.kept: list[Any] = []
        self.log: list[str] = []
        self.built = self.do(built) if built else ""

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        random.seed(seed)
        np.random.seed(seed)
        self.log = []
        return "start", {"options": options}

    def step(self, action: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        answer = self.do(action)
        self.log.append(action)
        return answer, 0.0, False, False, {"log": list(self.log)}

    def render(self) -> Any:
        return f"{len(self.log)} done"

    def close(self) -> None:
        if self.log[-1:] == ["fail to close"]:
            raise RuntimeError("the door is stuck")

    def do(self, action: str) -> Any:
        name, _, argument = action.partition(" ")
        return getattr(self, f"do_{name}")(argument)

    def do_nothing(self, _: str) -> str:
        return ""

    def do_draw(self, _: str) -> list[float]:
        return [random.random(), float(np.random.random()), float(self.np_random.random())]

    def do_pid(self, _: str) -> int:
        return os.getpid()

    def do_fail(self, how: str) -> str:
        raise {
            "value": ValueError("not this", 7),
            "key": KeyError("fridge"),
            "gym": gym.error.ResetNeeded("reset first"),
            "own": TeapotError("short and stout"),
            "exit": SystemExit(3),
            "decode": UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no"),
            "to": RuntimeError("it did not close"),
        }[how.partition(" ")[0]]

    def do_object(self, _: str) -> Any:
        return object()

    def do_die(self, how: str) -> None:
        if how == "exit":
            os._exit(5)
        os.kill(os.getpid(), getattr(signal, how))

    def do_hang(self, _: str) -> None:
        time.sleep(3600)

    def do_sleep(self, seconds: str) -> None:
        time.sleep(float(seconds))

    def do_thread(self, _: str) -> None:
        self.kept.append(threading.Event())
        threading.Thread(target=self.kept[-1].wait, name="janitor", daemon=True).start()

    def do_child(self, _: str) -> None:
        self.kept.append(subprocess.Popen(["sleep", "3600"]))

    def do_daemon(self, _: str) -> int:
        code = "import os, time; os.setsid(); print(os.getpid(), flush=True); time.sleep(3600)"
        command = ["sh", "-c", f"'{sys.executable}' -c '{code}' & wait"]
        child = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert child.stdout is not None
        return int(child.stdout.readline())

    def do_socket(self, _: str) -> None:
        self.kept.append(socket.socketpair())

    def do_pipe(self, _: str) -> None:
        self.kept.append(os.pipe())

    def do_share(self, _: str) -> None:
        import mmap

        self.kept.append(mmap.mmap(-1, 4096))

    def do_timer(self, _: str) -> None:
        signal.signal(signal.SIGALRM, lambda *_: None)
        signal.setitimer(signal.ITIMER_REAL, 3600)

    def do_folder(self, _: str) -> str:
        return tempfile.gettempdir()

    def do_list(self, _: str) -> list[str]:
        return os.listdir(tempfile.gettempdir())  # noqa: PTH208 - in the kernel's order

    def do_several(self, _: str) -> list[str]:
        for name in "dbaec":
            self.do_write(f"{name} x")
        return self.do_list("")

    def do_built(self, _: str) -> Any:
        return self.built

    def do_children(self, _: str) -> list[int]:
        """Count the ends of children; the answer is how many were counted until now."""
        if not self.kept:
            self.kept.append([0])
            signal.signal(signal.SIGCHLD, lambda *_: self.kept[0].append(1))
        return list(self.kept[0])

    def do_write(self, what: str) -> None:
        """`write NAME TEXT`: NAME is in the temporary folder unless it is absolute."""
        name, _, text = what.partition(" ")
        Path(tempfile.gettempdir(), name).write_text(text)

    def do_read(self, name: str) -> str:
        return Path(tempfile.gettempdir(), name).read_text()

    def do_makedirs(self, name: str) -> None:
        os.makedirs(Path(tempfile.gettempdir(), name), exist_ok=True)  # noqa: PTH103 - its audit event

    def do_remove(self, name: str) -> None:
        Path(tempfile.gettempdir(), name).unlink()

    def do_link(self, names: str) -> None:
        old, new = names.split()
        folder = Path(tempfile.gettempdir())
        (folder / new).hardlink_to(folder / old)

    def do_fifo(self, name: str) -> None:
        os.mkfifo(Path(tempfile.gettempdir(), name))

    def do_chdir(self, name: str) -> None:
        os.chdir(Path(tempfile.gettempdir(), name))

    def do_cwd(self, _: str) -> str:
        return str(Path.cwd())

    def do_open(self, what: str) -> None:
        """`open MODE NAME`."""
        mode, name = what.split()
        self.kept.append(Path(tempfile.gettempdir(), name).open(mode))  # noqa: SIM115

    def do_nameless(self, _: str) -> None:
        self.kept.append(tempfile.TemporaryFile("w+"))  # noqa: SIM115

    def do_memory(self, _: str) -> None:
        self.kept.append(os.fdopen(os.memfd_create("lab"), "w+"))

    def do_twice(self, _: str) -> None:
        """Have the last file open by a second descriptor with the same position."""
        self.kept.append(os.fdopen(os.dup(self.kept[-1].fileno()), "w+"))

    def do_put(self, text: str) -> None:
        self.kept[-1].write(text)
        self.kept[-1].flush()

    def do_get(self, size: str) -> str:
        text: str = os.read(self.kept[-1].fileno(), int(size)).decode()
        return text

    def do_all(self, _: str) -> str:
        number = self.kept[-1].fileno()
        return os.pread(number, os.fstat(number).st_size, 0).decode()

    def do_let_go(self, _: str) -> None:
        self.kept.clear()

    def do_heap(self, megabytes: str) -> None:
        """Half of it in Python objects, half in an array."""
        half = int(megabytes) * 2**19
        self.kept.append([[i, str(i)] for i in range(half // 150)])
        self.kept.append(np.ones(half // 8))

    def do_collect(self, _: str) -> None:
        gc.collect()

    def do_print(self, text: str) -> None:
        sys.stdout.write(text)  # not flushed


def lab(**kwargs: Any) -> ProcessEnv:
    """A lab in a worker process, reset."""
    built = kwargs.pop("built", "")
    env = ProcessEnv(Lab(), lambda: Lab(built), **kwargs)
    env.reset(seed=1)
    return env


def answer(env: gym.Env[Any, Any], action: str) -> Any:
    return env.step(action)[0]
