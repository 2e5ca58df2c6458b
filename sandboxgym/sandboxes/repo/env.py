"""`RepoEnv`: a working tree with a shell, as an environment that forks in milliseconds.

An action is a bash command. Files, and the state of the shell, are in every snapshot. At the end
the agent submits, and what it changed is graded in a sandbox in which it never was.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from gymnasium import spaces

from sandboxgym.core.digest import digest
from sandboxgym.core.env import ForkableEnv
from sandboxgym.core.errors import InvalidActionError, InvalidOptionsError
from sandboxgym.core.snapshot import Fidelity
from sandboxgym.sandboxes.repo import bases, patch
from sandboxgym.sandboxes.repo.backend import Backend, Checkpoint, Limits, Sandbox, SandboxError
from sandboxgym.sandboxes.repo.patch import Patch, PatchError
from sandboxgym.sandboxes.repo.spaces import AnyText

Observation: TypeAlias = dict[str, Any]
Action: TypeAlias = str | dict[str, Any]

MAX_COMMAND = 1_000_000
SUBMIT = "submit"


@dataclass(frozen=True)
class Grading:
    """What a reward function is given.

    Attributes:
        backend: Makes further sandboxes.
        pristine: The moment before the agent began.
        agent: The moment of the submission. What it holds is the agent's: do not run it where a
            result has to be trusted.
        patch: What the agent changed.
    """

    backend: Backend
    pristine: Checkpoint
    agent: Checkpoint
    patch: Patch


@dataclass(frozen=True)
class Grade:
    """What a submission is worth.

    Attributes:
        reward: Usually 1.0 for solved and 0.0 for not.
        valid: False where the grading itself failed, so that the reward says nothing.
        reason: Why it is not valid, or what was found; no part of what is kept from the agent.
    """

    reward: float
    valid: bool = True
    reason: str = ""


Reward: TypeAlias = Callable[[Grading], Grade]


class RepoEnv(ForkableEnv[Observation, Action]):
    """A git repository or a folder, and a shell in it.

    Actions are bash commands: a string, `{"command": string}`, or `{"submit": True}`, which ends
    the episode. Observations have `output`, `returncode`, `timed_out`, `truncated`,
    `elided_chars`.

    Args:
        repository: A git repository or a folder of the machine; it is copied, never written to.
        commit: Which commit of the repository; None takes the folder as it lies there.
        statement: What the agent is to do; the first observation.
        test_command: Grades a submission: reward 1 where it ends with 0, in a pristine tree to
            which the agent's patch was applied.
        reward: Grades instead of `test_command`.
        protected: Files that a graded patch may not change.
        toolchains: Folders of the machine that commands need beside /usr, shown read-only.
        environment: Variables of the shell, beside the usual ones.
        limits: What commands may use.
        backend: Runs the sandboxes; None makes an `OverlayBackend` for this environment and its
            forks.
        allow_process_loss: Let a snapshot end what runs in the background, instead of refusing.

    Raises:
        DataNotFoundError: There is no such folder.
        RepositoryError: There is no such repository or commit.
        SandboxError: The machine does not allow what the backend needs.
    """

    state_is_witness = True
    metadata = {"render_modes": []}

    def __init__(
        self,
        repository: str | os.PathLike[str],
        *,
        commit: str | None = "HEAD",
        statement: str = "",
        test_command: str | None = None,
        reward: Reward | None = None,
        protected: Sequence[str] = (),
        toolchains: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        limits: Limits | None = None,
        backend: Backend | None = None,
        allow_process_loss: bool = False,
    ) -> None:
        if commit is None:
            base = bases.base_of_folder(repository, toolchains=toolchains, environment=environment)
        else:
            base = bases.base_of_commit(
                repository, commit, toolchains=toolchains, environment=environment
            )
        self.limits = limits or Limits()
        self.statement = statement
        self.protected = tuple(protected)
        self.allow_process_loss = allow_process_loss
        self._reward = reward or graded_by(test_command)
        self._base = base
        self._backend = backend or _overlay(self.limits)
        self._pristine: Checkpoint | None = None
        self._sandbox: Sandbox | None = None
        self._seen = ""
        self.action_space: Any = AnyText(MAX_COMMAND)
        self.observation_space = spaces.Dict(
            {
                "output": AnyText(max(self.limits.output, len(statement))),
                "returncode": spaces.Box(0, 255, (), np.int64),
                "timed_out": spaces.Discrete(2),
                "truncated": spaces.Discrete(2),
                "elided_chars": spaces.Box(0, np.iinfo(np.int64).max, (), np.int64),
            }
        )

    @property
    def fidelity(self) -> Fidelity:
        """Files and shell; processes in the background are refused, or ended where allowed."""
        return Fidelity(scope=frozenset({"filesystem", "shell"}))

    def spec_kwargs(self) -> dict[str, Any]:
        """The tree, and what decides how commands go and what is seen."""
        limits = self.limits
        return {
            "tree": self._base.name,
            "statement": self.statement,
            "environment": dict(self._base.environment),
            "seconds": limits.seconds,
            "output": limits.output,
        }

    def spawn(self) -> RepoEnv:
        """Another environment on the same backend, so that it can go on from this one's moments."""
        new = super().spawn()
        assert isinstance(new, RepoEnv)
        new._backend = self._backend
        return new

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Return to the tree as it was at the start, with a new shell."""
        if options:
            raise InvalidOptionsError(f"a RepoEnv has no options to reset; got {sorted(options)}")
        super().reset(seed=seed)
        if self._pristine is None:
            self._sandbox = self._backend.create(self._base)
            self._pristine = self._sandbox.snapshot()
        else:
            self._go_to(self._pristine)
        self._seen = ""
        return self._shown(_observation(self.statement)), {}

    def step(self, action: Action) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Run a command, or submit."""
        command = parsed(action)
        if command is None:
            return self._submit()
        assert self._sandbox is not None
        result = self._sandbox.run(command)
        seen = _observation(
            result.output,
            returncode=result.returncode,
            timed_out=result.timed_out,
            truncated=result.truncated,
            elided_chars=result.elided_chars,
        )
        return self._shown(seen), 0.0, False, False, {}

    def get_state(self) -> dict[str, Any]:
        """A hash of everything that was seen: a witness, not a state to be set."""
        return {"seen": self._seen}

    def hold(self) -> Held:
        """Freeze the files and the state of the shell."""
        assert self._sandbox is not None
        assert self._pristine is not None
        moment = self._sandbox.snapshot(allow_process_loss=self.allow_process_loss)
        return Held(self._backend, self._pristine, moment, self._seen)

    def resume(self, held: Held) -> bool:
        """Go on from frozen files, if they lie in the backend of this environment."""
        if held.backend is not self._backend:
            return False
        self._pristine = held.pristine
        self._go_to(held.moment)
        self._seen = held.seen
        return True

    def close(self) -> None:
        """End the sandbox. Moments of it can be restored in other environments still."""
        if self._sandbox is not None:
            self._sandbox.close()
            self._sandbox = None

    def _go_to(self, moment: Checkpoint) -> None:
        if self._sandbox is None:
            self._sandbox = self._backend.fork(moment)
        else:
            self._sandbox.restore(moment)

    def _submit(self) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        grade = self._grade()
        seen = self._shown(_observation(""))
        info = {"reward_valid": grade.valid, "failure_reason": grade.reason}
        return seen, grade.reward, True, False, info

    def _grade(self) -> Grade:
        assert self._sandbox is not None
        assert self._pristine is not None
        agent = self._sandbox.snapshot(allow_process_loss=True)
        try:
            changed = patch.capture(self._backend, self._pristine, agent, self.protected)
            return self._reward(Grading(self._backend, self._pristine, agent, changed))
        except PatchError as error:
            return Grade(0.0, reason=str(error))
        except SandboxError as error:
            return Grade(0.0, valid=False, reason=str(error))

    def _shown(self, observation: Observation) -> Observation:
        self._seen = digest([self._seen, observation])
        return observation


@dataclass(frozen=True)
class Held:
    """A moment of a `RepoEnv`, as a snapshot holds it."""

    backend: Backend
    pristine: Checkpoint
    moment: Checkpoint
    seen: str


def parsed(action: Action) -> str | None:
    """The command of an action, or None for a submission.

    Raises:
        InvalidActionError: It is neither.
    """
    if action == {SUBMIT: True}:
        return None
    command = action.get("command") if isinstance(action, dict) and len(action) == 1 else action
    if not isinstance(command, str):
        raise InvalidActionError(
            f"an action is a command as a string, {{'command': string}} or {{'submit': True}}; "
            f"got {action!r}"
        )
    if len(command) > MAX_COMMAND or "\0" in command:
        raise InvalidActionError(
            f"a command has no NUL and at most {MAX_COMMAND} characters; this one has "
            f"{len(command)}"
        )
    return command


def graded_by(test_command: str | None) -> Reward:
    """A reward of 1 where a command ends with 0 in a pristine tree with the agent's patch."""

    def grade(grading: Grading) -> Grade:
        if test_command is None:
            return Grade(0.0, valid=False, reason="nothing says how a submission is graded")
        sandbox = grading.backend.fork(grading.pristine)
        try:
            patch.apply(sandbox, grading.patch.text)
            done = sandbox.run(test_command)
        finally:
            sandbox.close()
        if done.timed_out:
            return Grade(0.0, reason="the tests did not end in time")
        return Grade(float(done.returncode == 0))

    return grade


def _observation(
    output: str,
    returncode: int = 0,
    timed_out: bool = False,
    truncated: bool = False,
    elided_chars: int = 0,
) -> Observation:
    return {
        "output": output,
        "returncode": returncode,
        "timed_out": timed_out,
        "truncated": truncated,
        "elided_chars": elided_chars,
    }


def _overlay(limits: Limits) -> Backend:
    from sandboxgym.sandboxes.repo.overlay.backend import OverlayBackend

    return OverlayBackend(limits)
