"""`sandboxgym/Repo-v0`: a repository or a folder of yours, with a shell in it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from sandboxgym.core.errors import InvalidOptionsError, SpecMismatchError
from sandboxgym.core.plain import plain_or_name
from sandboxgym.sandboxes.repo import bases
from sandboxgym.sandboxes.repo.backend import Backend, Base, Limits
from sandboxgym.sandboxes.repo.shell_env import ShellEnv, Task
from sandboxgym.sandboxes.repo.submission import Grade, Reward, Submission, by_test_command


class RepoEnv(ShellEnv):
    """A git repository or a folder, and a shell in it.

    Actions are bash commands: a string, `{"command": string}`, or `{"submit": True}`, which ends
    the episode. Observations have `output`, `returncode`, `timed_out`, `truncated`,
    `elided_chars`; infos have `limits_reached` and `ended_sandbox`, and after a submission
    `reward_valid` and `failure_reason`.

    Args:
        repository: A git repository or a folder of the machine, which is copied and never written
            to; or a `Base` that was made before.
        commit: Which commit of the repository; None takes the folder as it lies there.
        statement: What the agent is to do; the output of the first observation.
        test_command: Grades a submission: reward 1 where it ends with 0, in a pristine tree to
            which the agent's patch was applied.
        test_seconds: How long that may take; None takes the limit of a command.
        reward: Grades instead of `test_command`.
        protected: Files that a graded patch may not change: paths, or patterns such as "tests/*".
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

    def __init__(
        self,
        repository: str | os.PathLike[str] | Base,
        *,
        commit: str | None = "HEAD",
        statement: str = "",
        test_command: str | None = None,
        test_seconds: float | None = None,
        reward: Reward | None = None,
        protected: Sequence[str] = (),
        toolchains: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        limits: Limits | None = None,
        backend: Backend | None = None,
        allow_process_loss: bool = False,
    ) -> None:
        super().__init__(limits=limits, backend=backend, allow_process_loss=allow_process_loss)
        if isinstance(repository, Base):
            base = repository
        elif commit is None:
            base = bases.base_of_folder(repository, toolchains=toolchains, environment=environment)
        else:
            base = bases.base_of_commit(
                repository, commit, toolchains=toolchains, environment=environment
            )
        grading = reward
        if grading is None:
            grading = (
                _nobody if test_command is None else by_test_command(test_command, test_seconds)
            )
        self.task = Task(base.name, base, statement, grading, tuple(protected))
        self._graded_by = test_command if reward is None else plain_or_name(reward)

    def task_named(self, name: str) -> Task:
        """The only task of this environment."""
        if name != self.task.name:
            raise SpecMismatchError(
                f"the snapshot is of the tree {name}, and this environment has {self.task.name}"
            )
        return self.task

    def choose_task(self, options: dict[str, Any]) -> Task:
        """The only task of this environment."""
        if options:
            raise InvalidOptionsError(f"a RepoEnv has no options to reset; got {sorted(options)}")
        return self.task

    def shared_arguments(self) -> dict[str, Any]:
        """The backend, and the tree: the folder it was copied from may be another one by now."""
        return {**super().shared_arguments(), "repository": self.task.base}

    def spec_kwargs(self) -> dict[str, Any]:
        """The tree, and what decides how commands go, what is seen and how it is graded."""
        return {
            **super().spec_kwargs(),
            "tree": self.task.base.name,
            "environment": dict(self.task.base.environment),
            "statement": self.task.statement,
            "graded_by": self._graded_by,
            "protected": list(self.task.protected),
        }


def _nobody(submission: Submission) -> Grade:
    return Grade(0.0, valid=False, reason="nothing says how a submission is graded")
