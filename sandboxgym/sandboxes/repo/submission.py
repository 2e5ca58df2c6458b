"""Submissions and what they are worth."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias

from sandboxgym.sandboxes.repo import patch
from sandboxgym.sandboxes.repo.backend import (
    Backend,
    Checkpoint,
    DiskFullError,
    Sandbox,
    SandboxError,
)
from sandboxgym.sandboxes.repo.bases import WORKDIR
from sandboxgym.sandboxes.repo.capture import Pristine, capture
from sandboxgym.sandboxes.repo.patch import NoRoomError, Patch, PatchError


@dataclass(frozen=True)
class Submission:
    """What a reward function is given.

    Attributes:
        backend: Makes further sandboxes.
        pristine: The moment before the agent began.
        agent: The moment of the submission. What it holds is the agent's: do not run it where a
            result has to be trusted.
        patch: What the agent changed.
        workdir: Where the repository is.
    """

    backend: Backend
    pristine: Checkpoint
    agent: Checkpoint
    patch: Patch
    workdir: str = WORKDIR

    @contextmanager
    def patched(self, tests: bytes = b"") -> Iterator[Sandbox]:
        """A sandbox in which the agent never was, with what it changed.

        Args:
            tests: A patch with hidden tests. It is applied first: where it does not fit the
                pristine tree, that is no fault of the agent's.

        Raises:
            SandboxError: The tests do not fit.
            PatchError: What the agent changed does not fit.
        """
        sandbox = self.backend.fork(self.pristine, fresh_shell=True)
        try:
            try:
                patch.apply(sandbox, tests, self.workdir)
            except NoRoomError:
                raise
            except PatchError as error:
                raise SandboxError(f"the tests do not fit the pristine tree: {error}") from error
            patch.apply(sandbox, self.patch.text, self.workdir)
            yield sandbox
        finally:
            sandbox.close()


@dataclass(frozen=True)
class Grade:
    """What a submission is worth.

    Attributes:
        reward: Usually 1.0 for solved and 0.0 for not.
        valid: False where the grading itself failed, so that the reward says nothing.
        reason: Why it is not valid, or not solved. The agent may see it: nothing of hidden tests.
        details: What whoever runs the environment may want to know; the agent never sees it.
    """

    reward: float
    valid: bool = True
    reason: str = ""
    details: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


Reward: TypeAlias = Callable[[Submission], Grade]


def graded(
    pristine: Pristine, agent: Checkpoint, reward: Reward, protected: tuple[str, ...]
) -> Grade:
    """Capture what an agent changed, and let a reward function say what it is worth.

    What is the agent's fault is worth 0; what is not makes the grade invalid.
    """
    try:
        changed = capture(pristine, agent, protected)
        return reward(
            Submission(pristine.backend, pristine.moment, agent, changed, pristine.workdir)
        )
    except PatchError as error:
        return Grade(0.0, reason=str(error))
    except DiskFullError as error:
        return Grade(0.0, reason=patch.FULL, details={"error": str(error)})
    except SandboxError as error:
        return Grade(0.0, valid=False, reason=str(error))


def by_test_command(command: str, seconds: float | None = None) -> Reward:
    """A reward of 1 where a command ends with 0 in a pristine tree with the agent's patch.

    Args:
        command: Text for bash.
        seconds: How long it may take; None takes that of the limits.
    """

    def reward(submission: Submission) -> Grade:
        with submission.patched() as sandbox:
            done = sandbox.run(command, seconds)
        patch.check_room(done)
        if done.timed_out:
            return Grade(0.0, reason="the tests did not end in time")
        if done.returncode != 0:
            return Grade(0.0, reason="the tests failed", details={"output": done.output})
        return Grade(1.0)

    return reward
