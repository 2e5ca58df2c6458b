"""What goes to and fro in OpenEnv's protocol, with two kinds of action beyond acting."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Literal

from pydantic import Field

from sandboxgym.core.errors import MissingDependencyError, SnapshotCorruptError
from sandboxgym.core.snapshot import Snapshot

try:
    from openenv.core.env_server import Action, Observation, State
except ImportError as error:
    raise MissingDependencyError(
        'these messages are OpenEnv\'s: pip install "sandboxgym[openenv]"'
    ) from error


class SandboxAction(Action):
    """One of three things to ask a session for.

    OpenEnv's protocol has `reset`, `step` and `state`, so that snapshot and restore are steps of a
    kind of their own. They are for who trains: let an agent write `command` and nothing else.
    """

    kind: Literal["act", "snapshot", "restore"] = Field(default="act", description="What to do")
    command: Any = Field(default=None, description="The action, where kind is act")
    snapshot: str | None = Field(default=None, description="The moment, where kind is restore")


class SandboxObservation(Observation):
    """What the environment returned last, be it at a reset, a step or a restore."""

    seen: Any = Field(default=None, description="The observation")
    info: dict[str, Any] = Field(default_factory=dict, description="The info beside it")
    terminated: bool = Field(default=False, description="Whether the task came to its end")
    truncated: bool = Field(default=False, description="Whether a limit was reached")
    snapshot: str | None = Field(default=None, description="The moment, where it was asked for")


class SandboxState(State):
    """Where a session is; the number of steps is that since the reset, also after a restore."""

    sandbox: str = Field(default="", description="Id of the environment")


def packed(snapshot: Snapshot) -> str:
    """A snapshot as text: data alone, for this server or any other."""
    return base64.b64encode(snapshot.to_bytes()).decode("ascii")


def unpacked(text: str | None) -> Snapshot:
    """Read a snapshot from a message; see `Snapshot.from_bytes` for what is refused.

    Raises:
        SnapshotCorruptError: It is none.
    """
    try:
        return Snapshot.from_bytes(base64.b64decode(text or "", validate=True))
    except binascii.Error as error:
        raise SnapshotCorruptError(f"the snapshot in the message is no base64: {error}") from error
