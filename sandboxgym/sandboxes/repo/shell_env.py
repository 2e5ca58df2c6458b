"""`ShellEnv`: a tree with a shell as an environment, whatever tree and task it is.

An action is a bash command. Files, and the state of the shell, are in every snapshot. At the end
the agent submits, and what it changed is graded in a sandbox in which it never was.
"""

from __future__ import annotations

import inspect
from abc import abstractmethod
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

from sandboxgym.core import codec
from sandboxgym.core.digest import digest
from sandboxgym.core.env import ForkableEnv
from sandboxgym.core.errors import SnapshotCorruptError, SnapshotError, UncapturedStateError
from sandboxgym.core.snapshot import Fidelity
from sandboxgym.sandboxes.repo.backend import (
    Backend,
    Base,
    Checkpoint,
    CommandResult,
    DiskFullError,
    Limits,
    Sandbox,
    SandboxBrokenError,
    SandboxError,
)
from sandboxgym.sandboxes.repo.capture import Pristine
from sandboxgym.sandboxes.repo.patch import FULL
from sandboxgym.sandboxes.repo.spaces import Action, ShellActions, observation_space, parsed
from sandboxgym.sandboxes.repo.submission import Grade, Reward, graded

Observation: TypeAlias = dict[str, Any]
Info: TypeAlias = dict[str, Any]

MAX_STATEMENT = 1_000_000
_BROKEN = "this sandbox was broken from inside and cannot go on"


@dataclass(frozen=True)
class Task:
    """What an episode is about.

    Attributes:
        name: Tells it from the others of its environment.
        base: Where it starts.
        statement: What the agent is told.
        reward: Says what a submission is worth.
        protected: Files that a graded patch may not change.
    """

    name: str
    base: Base
    statement: str
    reward: Reward = field(compare=False)
    protected: tuple[str, ...] = ()


@dataclass(frozen=True)
class Held:
    """A moment of a `ShellEnv`, as a snapshot holds it."""

    backend: Backend
    task: Task
    pristine: Pristine
    moment: Checkpoint
    seen: str

    def __deepcopy__(self, memo: object) -> Held:
        """Itself: nothing can change it, and its layers live as long as it is referred to."""
        return self

    def pack(self) -> bytes:
        """It as bytes that `ShellEnv.unpack` takes, in any process."""
        moment = self.backend.export(self.moment)
        return codec.encode({"task": self.task.name, "moment": moment, "seen": self.seen})


class ShellEnv(ForkableEnv[Observation, Action]):
    """An environment whose actions are commands; a subclass says which tasks there are.

    Args:
        limits: What commands may use.
        backend: Runs the sandboxes; None makes an `OverlayBackend` for this environment and its
            forks.
        allow_process_loss: Let a snapshot end what runs in the background, instead of refusing.

    Attributes:
        grade: What the last submission was worth, with details that are not for the agent.
    """

    state_is_witness = True
    metadata = {"render_modes": []}

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        backend: Backend | None = None,
        allow_process_loss: bool = False,
    ) -> None:
        self.limits = limits or Limits()
        self.allow_process_loss = allow_process_loss
        self.grade: Grade | None = None
        self.action_space: Any = ShellActions()
        self.observation_space = observation_space(max(self.limits.output, MAX_STATEMENT))
        self._backend = backend or _overlay(self.limits)
        self._task: Task | None = None
        self._pristine: Pristine | None = None
        self._sandbox: Sandbox | None = None
        self._seen = ""

    @abstractmethod
    def task_named(self, name: str) -> Task:
        """The task of this name.

        Raises:
            SnapshotError: There is none.
        """

    @abstractmethod
    def choose_task(self, options: dict[str, Any]) -> Task:
        """The task that `reset` starts.

        Raises:
            InvalidOptionsError: The options name none.
        """

    @property
    def fidelity(self) -> Fidelity:
        """Files and shell; processes in the background are refused, or ended where allowed."""
        return Fidelity(scope=frozenset({"filesystem", "shell"}))

    def spec_kwargs(self) -> dict[str, Any]:
        """What decides how commands go and what is seen of them."""
        return {"limits": asdict(self.limits), "allow_process_loss": self.allow_process_loss}

    def spawn(self) -> ShellEnv:
        """Another environment on the same backend, so that it can go on from this one's moments."""
        given = inspect.signature(type(self)).bind(
            *self._constructor.args, **self._constructor.kwargs
        )
        new = type(self)(**{**given.arguments, **self.shared_arguments()})
        new.spec = self.spec
        new._spec_of_sandbox = self._spec_of_sandbox
        return new

    def shared_arguments(self) -> dict[str, Any]:
        """Arguments for other environments of the same kind that are not to be made again."""
        return {"backend": self._backend}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, Info]:
        """Go to the tree as it is at the start of a task, with a new shell."""
        super().reset(seed=seed)
        task = self.choose_task(options or {})
        with _Losing(self):
            if self._pristine is not None and self._task == task:
                self._go_to(task, self._pristine.moment)
            else:
                self._open(task)
        self._seen = ""
        return self._shown(task.name, CommandResult(task.statement, 0))

    def step(self, action: Action) -> tuple[Observation, float, bool, bool, Info]:
        """Run a command, or submit."""
        command = parsed(action)
        with _Losing(self):
            try:
                if command is None:
                    return self._submit()
                result = self._living().run(command)
            except SandboxBrokenError as error:
                return self._give_up(command, error)
        observation, info = self._shown(command, result)
        return observation, 0.0, False, False, info

    def get_state(self) -> dict[str, Any]:
        """A hash of all that was done and seen: a witness, not a state to be set."""
        return {"seen": self._seen}

    def hold(self) -> Held:
        """Freeze the files and the state of the shell."""
        sandbox = self._living()
        assert self._task is not None
        assert self._pristine is not None
        try:
            moment = sandbox.snapshot(allow_process_loss=self.allow_process_loss)
        except SandboxBrokenError as error:
            raise UncapturedStateError(f"this sandbox cannot be captured: {error}") from error
        return Held(self._backend, self._task, self._pristine, moment, self._seen)

    def resume(self, held: Held) -> bool:
        """Go on from frozen files, if they lie in the backend of this environment."""
        if held.backend is not self._backend:
            return False
        self._go_to(held.task, held.moment)
        self._task, self._pristine, self._seen = held.task, held.pristine, held.seen
        return True

    def unpack(self, packed: bytes) -> Held:
        """A moment that travelled here, in the backend of this environment.

        Raises:
            SnapshotCorruptError: The bytes are not what `Held.pack` makes.
        """
        try:
            tree = codec.decode(packed)
            name, exported, seen = (tree[key] for key in ("task", "moment", "seen"))
            if [type(part) for part in (name, exported, seen)] != [str, bytes, str]:
                raise TypeError("a part is of another type")
        except (KeyError, TypeError, SnapshotError) as error:
            raise SnapshotCorruptError(f"these bytes are no packed moment: {error}") from error
        task = self.task_named(name)
        moment = self._backend.import_(task.base, exported)
        return Held(self._backend, task, self._pristine_of(task), moment, seen)

    def close(self) -> None:
        """End the sandbox. Moments of it can be restored in other environments still."""
        if self._sandbox is not None:
            self._sandbox.close()
            self._sandbox = None

    def _living(self) -> Sandbox:
        if self._sandbox is None:
            raise SandboxError("this environment is closed: reset it, or restore a snapshot")
        return self._sandbox

    def _open(self, task: Task) -> None:
        """Start a task for the first time."""
        sandbox = self._backend.create(task.base)
        try:
            pristine = Pristine(self._backend, sandbox.snapshot(), task.base.workdir)
        except BaseException:
            sandbox.close()
            raise
        self.close()
        self._task, self._pristine, self._sandbox = task, pristine, sandbox

    def _pristine_of(self, task: Task) -> Pristine:
        if self._pristine is not None and self._task == task:
            return self._pristine
        sandbox = self._backend.create(task.base)
        try:
            return Pristine(self._backend, sandbox.snapshot(), task.base.workdir)
        finally:
            sandbox.close()

    def _go_to(self, task: Task, moment: Checkpoint) -> None:
        """Go to a moment; one above another tree takes another sandbox."""
        if self._sandbox is not None and self._task == task:
            self._sandbox.restore(moment)
        else:
            sandbox = self._backend.fork(moment)
            self.close()
            self._sandbox = sandbox

    def _submit(self) -> tuple[Observation, float, bool, bool, Info]:
        assert self._task is not None
        assert self._pristine is not None
        agent = self._living().snapshot(allow_process_loss=True)
        self.grade = graded(self._pristine, agent, self._task.reward, self._task.protected)
        return self._ended(None, CommandResult("", 0), self.grade)

    def _give_up(
        self, command: str | None, error: SandboxBrokenError
    ) -> tuple[Observation, float, bool, bool, Info]:
        """End the episode where the agent broke its sandbox, or wrote until the disk was full.

        Raises:
            SandboxError: No others can be made either, so it is no fault of the agent's.
        """
        assert self._pristine is not None
        reason = FULL
        if not isinstance(error, DiskFullError):
            reason = _BROKEN
            another = self._backend.fork(self._pristine.moment)
            try:
                another.run("true")
            finally:
                another.close()
        self.grade = Grade(0.0, reason=reason, details={"error": str(error)})
        return self._ended(command, CommandResult(f"{reason}\n", 1), self.grade)

    def _ended(
        self, command: str | None, result: CommandResult, grade: Grade
    ) -> tuple[Observation, float, bool, bool, Info]:
        observation, info = self._shown(command, result)
        info |= {"reward_valid": grade.valid, "failure_reason": grade.reason}
        return observation, float(grade.reward), True, False, info

    def _shown(self, cause: str | None, result: CommandResult) -> tuple[Observation, Info]:
        """What is shown of a command, noted down with what led to it."""
        observation = {
            "output": result.output,
            "returncode": result.returncode,
            "timed_out": result.timed_out,
            "truncated": result.truncated,
            "elided_chars": result.elided_chars,
        }
        info = {
            "limits_reached": list(result.limits_reached),
            "ended_sandbox": result.ended_sandbox,
        }
        self._seen = digest([self._seen, cause, observation, info])
        return observation, info


class _Losing:
    """Ends the episode of an environment where its sandbox is lost on the way."""

    def __init__(self, env: ShellEnv) -> None:
        self.env = env

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is not None and issubclass(kind, SandboxError):
            self.env._record = None
            self.env.close()


def _overlay(limits: Limits) -> Backend:
    from sandboxgym.sandboxes.repo.overlay.backend import OverlayBackend

    return OverlayBackend(limits)
