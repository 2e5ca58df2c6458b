"""Checkpoints: everything that a later update depends on, in one file that is replaced whole.

There is no random generator in it. Every draw comes from a generator that is seeded by the seed of
the run and the number of the update (and, in a tree, the place), so that number is enough.
"""

from __future__ import annotations

import io
import json
import pickle
from pathlib import Path
from typing import Any

import torch

from sandboxgym.core.digest import differences
from sandboxgym.core.errors import SandboxGymError
from sandboxgym_learners.config import TrainConfig
from sandboxgym_learners.runlog import write_atomically

FILE = "checkpoint.pt"

_FREE = ("out", "resume", "tensorboard", "trackers", "budget")  # may differ when a run goes on


class CheckpointError(SandboxGymError, ValueError):
    """The checkpoint is damaged, or belongs to a run of another configuration."""


def save_checkpoint(config: TrainConfig, state: dict[str, Any]) -> None:
    """Replace the checkpoint of a run.

    Args:
        config: The run's configuration.
        state: Plain data and tensors.
    """
    buffer = io.BytesIO()
    torch.save({"config": config.to_dict(), "state": state}, buffer)
    write_atomically(config.out / FILE, buffer.getvalue())


def has_checkpoint(folder: Path) -> bool:
    """Whether a run has got as far as its first checkpoint."""
    return (folder / FILE).is_file()


def load_checkpoint(config: TrainConfig) -> dict[str, Any]:
    """The state that was saved last. Reads data only: a checkpoint cannot run code.

    Raises:
        CheckpointError: The file is no checkpoint of ours, or the configurations differ in
            something that decides the updates.
    """
    path = config.out / FILE
    try:
        content = torch.load(path, weights_only=True)
        saved, state = content["config"], content["state"]
    except (RuntimeError, pickle.UnpicklingError, EOFError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"{path} is not an intact checkpoint: start again in another --out"
        ) from error
    refuse_other_configuration(saved, config)
    loaded: dict[str, Any] = state
    return loaded


def refuse_other_configuration(saved: dict[str, Any], config: TrainConfig) -> None:
    """Raise `CheckpointError` where `config` does not go on with the run that was `saved`."""
    asked = json.loads(json.dumps(_decisive(config.to_dict())))
    changed = differences(json.loads(json.dumps(_decisive(saved))), asked, limit=3)
    if changed:
        listed = "; ".join(f"{d.path} was {d.left} and is {d.right}" for d in changed)
        raise CheckpointError(
            f"{config.out} holds a run of another configuration: {listed}. Resume with the command "
            "line of the first start, or choose another --out"
        )


def _decisive(config: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in config.items() if name not in _FREE}
