"""Environments that hang, crash, exit, and take what they can get."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import tempfile
import time

import numpy as np

from tests.mutants.correct import Ferry


class Troubled(Ferry):
    """Correct for two steps; the third brings trouble."""

    def step(self, action):
        if self.fuel == self.capacity - 2:
            self.trouble()
        return super().step(action)

    def trouble(self):
        raise NotImplementedError


class Loops(Troubled):
    def trouble(self):
        while True:
            pass


class WaitsInC(Troubled):
    def trouble(self):
        ctypes.CDLL(None).pause()


class DefiesSignals(Troubled):
    def trouble(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
            signal.signal(number, signal.SIG_IGN)
        time.sleep(1e6)


class Exits(Troubled):
    def trouble(self):
        sys.exit(3)


class ExitsHard(Troubled):
    def trouble(self):
        os._exit(7)


class Crashes(Troubled):
    def trouble(self):
        print("the last words")
        ctypes.string_at(0)


class ClosesAllFiles(Troubled):
    def trouble(self):
        os.closerange(0, 100)


class HangsInReset(Ferry):
    def reset(self, *, seed=None, options=None):
        if seed == 1:
            time.sleep(1e6)
        return super().reset(seed=seed)


class HangsInClose(Ferry):
    def close(self):
        time.sleep(1e6)


class HangsWhenMade(Ferry):
    def __init__(self):
        time.sleep(1e6)


class HangsInRestore(Ferry):
    def set_state(self, state):
        time.sleep(1e6)


class LeavesChildrenWhenItDies(Troubled):
    def trouble(self):
        if os.fork() == 0:
            os.setsid()
            time.sleep(1e6)
        os._exit(1)


class TakesMemory(Ferry):
    def set_state(self, state):
        self.ballast = np.ones(10**8)
        time.sleep(5)


class Talks(Ferry):
    def step(self, action):
        print("x" * 10_000)
        print("y" * 10_000, file=sys.stderr)
        os.write(1, b"z" * 10_000)
        return super().step(action)


class LivesInAFolderThatIsGone(Ferry):
    def reset(self, *, seed=None, options=None):
        folder = tempfile.mkdtemp()
        os.chdir(folder)
        os.rmdir(folder)  # noqa: PTH106
        return super().reset(seed=seed)


class GoesOnInACopyOfItsProcess(Ferry):
    """After one fork, the suite would run twice."""

    forked = False

    def reset(self, *, seed=None, options=None):
        if not self.forked:
            type(self).forked = True
            os.fork()
        return super().reset(seed=seed)


def never_decides(obs, info, space, rng):
    time.sleep(1e6)


def makes_no_environment():
    return {"no": "environment"}
