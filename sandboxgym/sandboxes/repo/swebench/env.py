"""`sandboxgym/SWEBench-v0`: real issues of real repositories, graded by hidden tests."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeAlias

from sandboxgym.core.digest import digest
from sandboxgym.core.errors import DataNotFoundError, InvalidOptionsError, SpecMismatchError
from sandboxgym.sandboxes.repo import bases
from sandboxgym.sandboxes.repo.backend import Backend, Base, Limits
from sandboxgym.sandboxes.repo.shell_env import ShellEnv, Task
from sandboxgym.sandboxes.repo.swebench import plan, toolchain, verdicts
from sandboxgym.sandboxes.repo.swebench.reward import HiddenTests
from sandboxgym.sandboxes.repo.swebench.rows import Row, RowError, Setup, read_rows

BaseOf: TypeAlias = Callable[[Row], Base]

SHIPPED = "shipped"
"""Instead of a file: the tasks that come with this package."""


class SWEBenchEnv(ShellEnv):
    """Tasks of SWE-bench, or others in the same format.

    Actions, observations and infos are those of `RepoEnv`. `reset(seed=...)` draws a task,
    `reset(options={"instance_id": name})` chooses one; the first observation's output is its
    problem statement. Nothing of the solution, the hidden tests or their names is in an
    observation, in an info, or within reach of the sandbox.

    Args:
        rows: A file, the name of a data set of the hub, "shipped", or rows.
        repos: A folder with a clone, bare or not, of each repository: named owner__name,
            owner/name or name.
        setup: How to make the environments, instead of what rows say: by instance, by repository,
            or one for all. Of these, packages are also built from their sources where need be; of
            those in rows only wheels are installed.
        base_of: Makes the trees, instead of `repos` and `setup`. Its environment has a `python3`.
        instances: Only these.
        dense: Reward the fraction of what had to be fixed, if nothing is broken.
        test_seconds: How long the hidden tests may take.
        limits: What commands may use.
        backend: Runs the sandboxes; None makes an `OverlayBackend` for this environment and its
            forks.
        allow_process_loss: Let a snapshot end what runs in the background, instead of refusing.

    Raises:
        DataNotFoundError: There is no such file, or no such instance in it.
        RowError: A row is malformed.
        SandboxError: The machine does not allow what the backend needs.
    """

    def __init__(
        self,
        rows: str | os.PathLike[str] | Sequence[Row] = SHIPPED,
        *,
        repos: str | os.PathLike[str] | None = None,
        setup: Setup | Mapping[str, Setup] | None = None,
        base_of: BaseOf | None = None,
        instances: Sequence[str] | None = None,
        dense: bool = False,
        test_seconds: float = 1800.0,
        limits: Limits | None = None,
        backend: Backend | None = None,
        allow_process_loss: bool = False,
    ) -> None:
        found, base_of_shipped = _read(rows)
        self._rows = _chosen(found, instances)
        self._base_of = base_of or base_of_shipped or FromClones(repos, setup).base
        self.dense = dense
        self.test_seconds = test_seconds
        self._tasks: dict[str, Task] = {}
        super().__init__(limits=limits, backend=backend, allow_process_loss=allow_process_loss)

    @property
    def instances(self) -> list[str]:
        """The names of all tasks."""
        return list(self._rows)

    def row(self, instance_id: str) -> Row:
        """A task with its solution and tests, for whoever runs the environment."""
        return self._rows[instance_id]

    def choose_task(self, options: dict[str, Any]) -> Task:
        """The task in the options, or one drawn by the seed."""
        if set(options) - {"instance_id"}:
            raise InvalidOptionsError(f"options={options}: give {{'instance_id': name}}")
        names = self.instances
        name = options.get("instance_id")
        if name is None:
            name = names[int(self.np_random.integers(len(names)))]
        if name not in self._rows:
            raise InvalidOptionsError(
                f"no task {name!r} among the {len(names)} here: see env.unwrapped.instances"
            )
        return self._task_of(self._rows[name])

    def task_named(self, name: str) -> Task:
        """The task of this name."""
        if name not in self._rows:
            raise SpecMismatchError(f"the snapshot is of the task {name}, which is not here")
        return self._task_of(self._rows[name])

    def spawn(self) -> SWEBenchEnv:
        """Another environment on the same backend, which need not make known tasks again."""
        new = super().spawn()
        assert isinstance(new, SWEBenchEnv)
        new._tasks = self._tasks
        return new

    def shared_arguments(self) -> dict[str, Any]:
        """The backend, and the rows as they were read."""
        rows = list(self._rows.values())
        return {**super().shared_arguments(), "rows": rows, "base_of": self._base_of}

    def spec_kwargs(self) -> dict[str, Any]:
        """The tasks, and what decides how commands go, what is seen and how it is graded."""
        return {
            **super().spec_kwargs(),
            "rows": digest([asdict(row) for row in self._rows.values()]),
            "dense": self.dense,
            "test_seconds": self.test_seconds,
        }

    def _task_of(self, row: Row) -> Task:
        if row.instance_id not in self._tasks:
            self._tasks[row.instance_id] = Task(
                name=row.instance_id,
                base=self._base_of(row),
                statement=row.problem_statement,
                reward=HiddenTests(row, self.test_seconds, self.dense),
                protected=protected_files(row),
            )
        return self._tasks[row.instance_id]


class FromClones:
    """Makes the trees of rows from clones of their repositories; arguments as of `SWEBenchEnv`."""

    def __init__(
        self,
        repos: str | os.PathLike[str] | None,
        setup: Setup | Mapping[str, Setup] | None,
    ) -> None:
        self.repos = None if repos is None else Path(repos)
        self.setup = setup

    def base(self, row: Row) -> Base:
        """The tree at the row's commit, with the Python that the row needs."""
        clone = self._clone(row)
        own = self._own_setup(row)
        setup = own or row.setup
        if setup is None:
            raise RowError(
                f"{row.instance_id}: nothing says which Python and which packages it needs; pass "
                f"setup={{{row.repo!r}: Setup('3.11', pins=(...))}}"
            )
        tools = toolchain.toolchain_of(setup, sources=own is not None)
        base = bases.base_of_commit(
            clone, row.base_commit, change=row.base_patch, environment=tools.environment
        )
        return replace(base, binds=(*base.binds, *tools.binds))

    def _clone(self, row: Row) -> Path:
        if self.repos is None:
            raise DataNotFoundError(
                f"{row.instance_id} needs the repository {row.repo}: pass repos=FOLDER, with a "
                f"clone in it, made by `git clone --bare https://github.com/{row.repo}`"
            )
        owner, _, name = row.repo.partition("/")
        for folder in (f"{owner}__{name}", row.repo, name):
            for path in (self.repos / folder, self.repos / f"{folder}.git"):
                if path.is_dir():
                    return path
        raise DataNotFoundError(
            f"no clone of {row.repo} in {self.repos}: it is looked for as {owner}__{name}, "
            f"{row.repo} and {name}, each with or without .git"
        )

    def _own_setup(self, row: Row) -> Setup | None:
        if isinstance(self.setup, Mapping):
            return self.setup.get(row.instance_id) or self.setup.get(row.repo)
        return self.setup


def protected_files(row: Row) -> tuple[str, ...]:
    """What a patch may not change: the tests, and what runs them unless that is to be repaired."""
    solution = plan.files_of(row.patch)
    runners = [
        pattern
        for pattern in verdicts.RUNNER_FILES
        if not any(Path(name).match(pattern) for name in solution)
    ]
    return (*plan.files_of(row.test_patch), *runners)


def _read(
    rows: str | os.PathLike[str] | Sequence[Row],
) -> tuple[Sequence[Row], BaseOf | None]:
    if rows == SHIPPED:
        from sandboxgym.sandboxes.repo import tasks

        return tasks.shipped_tasks(), tasks.base_of_task
    if isinstance(rows, (str, os.PathLike)):
        return read_rows(rows), None
    return rows, None


def _chosen(rows: Sequence[Row], instances: Sequence[str] | None) -> dict[str, Row]:
    by_name = {row.instance_id: row for row in rows}
    if instances is None:
        return by_name
    missing = sorted(set(instances) - set(by_name))
    if missing:
        raise DataNotFoundError(f"no row is named {', '.join(missing)}")
    return {name: by_name[name] for name in instances}
