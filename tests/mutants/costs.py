"""Environments of which forking leaves something behind."""

from __future__ import annotations

import os
import tempfile
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
