"""Every error that sandboxgym raises on purpose, in one hierarchy.

A message names the thing that is wrong, the reason, and the way out.
"""

from __future__ import annotations

from gymnasium.error import ResetNeeded


class SandboxGymError(Exception):
    """Base class of all errors of this package."""


class NotResetError(SandboxGymError, ResetNeeded):
    """`step` or `snapshot` was called before the first `reset`."""


class EpisodeEndedError(SandboxGymError, ResetNeeded):
    """`step` was called after the episode had terminated or was truncated."""


class InvalidActionError(SandboxGymError, ValueError):
    """The action is not of the kind that the environment takes; the environment is unchanged."""


class InvalidOptionsError(SandboxGymError, ValueError):
    """The options given to `reset` are not possible; the episode goes on."""


class MissingDependencyError(SandboxGymError, ImportError):
    """An optional dependency is not installed; the message names the extra that brings it."""


class DataNotFoundError(SandboxGymError, FileNotFoundError):
    """Game files, a data folder or a split that was asked for does not exist."""


class GameFileError(SandboxGymError, ValueError):
    """A game file is malformed, beyond a limit, or uses what the engine does not know."""


class NotForkableError(SandboxGymError, TypeError):
    """The environment has no state hooks and is not wrapped by something that has."""


class UnknownWrapperError(SandboxGymError, TypeError):
    """A wrapper in the stack has no declared rule, so its state cannot be captured."""


class UncapturedStateError(SandboxGymError):
    """The environment holds state that the mechanism in use cannot capture."""


class ReproductionError(SandboxGymError):
    """A second, identical instance of an environment stack cannot be built."""


class SnapshotError(SandboxGymError):
    """Base class of what can be wrong with a snapshot."""


class StateEncodingError(SnapshotError, TypeError):
    """A value is not plain data and cannot be hashed or written to a snapshot."""


class SnapshotCorruptError(SnapshotError, ValueError):
    """The bytes are not an intact snapshot, or exceed a limit; nothing was restored."""


class SnapshotVersionError(SnapshotError):
    """The snapshot was made by another version of the format or of the environment."""


class SpecMismatchError(SnapshotError):
    """The snapshot belongs to an environment with another id or other arguments."""


class WrapperMismatchError(SnapshotError):
    """The snapshot was taken through another wrapper stack than the one it is restored to."""


class RestoreMismatchError(SnapshotError):
    """The restored state does not have the snapshot's digest; the message has the difference."""


class RestoreFailedError(SnapshotError):
    """`set_state` failed half-way; the message says whether the environment could be put back."""


class StoreError(SandboxGymError):
    """A snapshot store cannot be opened, read or written; what was stored before is still there."""


class SnapshotNotFoundError(StoreError, LookupError):
    """The store holds no snapshot under this key."""


class StoreCorruptError(StoreError):
    """Something in the store is not what was stored; it is named, and it is not served."""


class WorkerLostError(SandboxGymError, RuntimeError):
    """The process that ran the environment is gone: the episode is over, `reset` starts another."""


class WorkerTimeoutError(WorkerLostError, TimeoutError):
    """The environment did not answer within its time limit, and its process was ended."""


class EnvironmentRaisedError(SandboxGymError, RuntimeError):
    """The environment raised, in its own process, an exception that only its process knows."""


class PoolError(SandboxGymError):
    """Base class of what can go wrong between a pool of environments and its user."""


class PoolClosedError(PoolError, RuntimeError):
    """The pool was closed, or belongs to another process."""


class LaneBusyError(PoolError, RuntimeError):
    """The lane is at work on something that was sent to it; receive the result first."""


class NoFreeLaneError(PoolError, RuntimeError):
    """All lanes are in use: release some, or make a pool with more."""


class BranchQueueFullError(PoolError, RuntimeError):
    """So many branches are waiting for a lane that no more are taken for now."""


class LanePoisonedError(PoolError, WorkerLostError):
    """What a lane was asked for ended its worker process again and again; the lane is as before."""


class LaneHungError(LanePoisonedError, TimeoutError):
    """What a lane was asked for took longer than its time limit, again and again."""
