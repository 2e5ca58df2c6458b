"""Environments of which forking leaves something behind."""

from __future__ import annotations

import ctypes
import os
import tempfile
import time
from pathlib import Path
from typing import Any, ClassVar

from . import mutant
from .correct import Ferry


@mutant("24")
class KeepsAllStates(Ferry):
    history: ClassVar[list[Any]] = []

    def set_state(self, state):
        self.history.append(dict(state))
        super().set_state(state)


@mutant("24")
class LeavesFilesOpen(Ferry):
    def get_state(self):
        os.open(os.devnull, os.O_RDONLY)
        return super().get_state()


@mutant("24")
class LeavesTemporaryFiles(Ferry):
    def set_state(self, state):
        Path(tempfile.mkdtemp(), "state").write_text(repr(state))
        super().set_state(state)


@mutant("24")
class LeavesZombies(Ferry):
    def set_state(self, state):
        if os.fork() == 0:
            os._exit(0)
        super().set_state(state)


@mutant("24")
class LeavesDaemons(Ferry):
    """They are in sessions of their own and have no parent any more."""

    def __init__(self):
        super().__init__()
        self.daemons = 0

    def set_state(self, state):
        super().set_state(state)
        self.daemons += 1
        if self.daemons % 20 == 0:
            self.start_daemon()

    def start_daemon(self):
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            return
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)


@mutant("24")
class LeavesMemoryOfC(Ferry):
    """What Python's allocator never sees."""

    def get_state(self):
        libc = ctypes.CDLL(None)
        libc.malloc.restype = ctypes.c_void_p
        block = libc.malloc(ctypes.c_size_t(100_000))
        ctypes.memset(block, 1, 100_000)
        return super().get_state()


@mutant("24")
class DoesNotEndItsHelperWhenClosed(Ferry):
    """Forking and closing leaves a process; snapshots and restores do not."""

    def __init__(self):
        super().__init__()
        self.helper = os.fork()
        if self.helper == 0:
            time.sleep(600)
            os._exit(0)
