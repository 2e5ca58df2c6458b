"""`sandboxgym tasks`: the bug-fix tasks that ship, and more of them from a repository of yours."""

from __future__ import annotations

import argparse
import itertools
import json
from pathlib import Path

from sandboxgym.cli.outcome import OK, Commands, UnusableInputError
from sandboxgym.core.errors import SandboxGymError


def add_command(commands: Commands) -> None:
    """Add the command's parser and those of its actions."""
    command = commands.add_parser(
        "tasks",
        help="show the bug-fix tasks that ship, or make some from a repository",
        description="Bug-fix tasks in SWE-bench's format, for sandboxgym/SWEBench-v0.",
    )
    actions = command.add_subparsers(title="actions", required=True, metavar="ACTION")
    _add_list(actions)
    _add_show(actions)
    _add_mutate(actions)


def _add_list(actions: Commands) -> None:
    action = actions.add_parser("list", help="show the tasks that ship")
    action.add_argument("--json", action="store_true", help="print them as JSON, with everything")
    action.set_defaults(run=_list)


def _add_show(actions: Commands) -> None:
    action = actions.add_parser("show", help="show what an agent is told about a task that ships")
    action.add_argument("task", metavar="TASK", help="its name")
    action.add_argument("--solution", action="store_true", help="show the solution as well")
    action.set_defaults(run=_show)


def _add_mutate(actions: Commands) -> None:
    action = actions.add_parser(
        "mutate",
        help="make tasks from a repository with tests",
        description="Break one function at a time, and keep what the tests notice. This runs the "
        "repository's tests on this machine, outside of any sandbox, many times; the repository "
        "itself is not changed. Exit status: 0 where tasks were made, 2 where not.",
    )
    action.add_argument("path", metavar="PATH", help="a git repository; its last commit is used")
    action.add_argument("--out", required=True, metavar="FILE", help="where rows go, as .jsonl")
    action.add_argument("--seed", type=int, default=0, help="(default: %(default)s)")
    action.add_argument("--limit", type=_count, default=None, help="how many tasks at most")
    action.add_argument("--tests", choices=("unittest", "pytest"), help="instead of finding out")
    action.add_argument(
        "--python", metavar="FILE", help="the Python that has what the tests need (default: this)"
    )
    action.add_argument(
        "--seconds", type=float, default=300.0, help="for all tests once (default: %(default)s)"
    )
    action.set_defaults(run=_mutate)


def _list(options: argparse.Namespace) -> int:
    from sandboxgym.sandboxes.repo.tasks.shipped import ROWS, shipped_tasks

    if options.json:
        raws = [json.loads(line) for line in ROWS.read_text(encoding="utf-8").split("\n") if line]
        print(json.dumps(raws, indent=2))
        return OK
    rows = shipped_tasks()
    width = max(len(row.instance_id) for row in rows)
    for row in rows:
        print(f"{row.instance_id:<{width}}  {row.problem_statement.splitlines()[0]}")
    return OK


def _show(options: argparse.Namespace) -> int:
    from sandboxgym.sandboxes.repo.tasks.shipped import shipped_tasks

    rows = {row.instance_id: row for row in shipped_tasks()}
    row = rows.get(options.task)
    if row is None:
        raise UnusableInputError(
            f"no task is named {options.task!r}: see `sandboxgym tasks list` for those that ship"
        )
    print(row.problem_statement.rstrip("\n"))
    if options.solution:
        print(f"\n{row.patch.rstrip()}")
    return OK


def _mutate(options: argparse.Namespace) -> int:
    from sandboxgym.sandboxes.repo.tasks.repositories import tasks_of_repository

    out = Path(options.out)
    if not out.name.endswith(".jsonl"):
        raise UnusableInputError(f"rows are written as JSON lines: name --out {out}.jsonl instead")
    rows = tasks_of_repository(
        options.path,
        seed=options.seed,
        limit=options.limit,
        framework=options.tests,
        python=options.python,
        seconds=options.seconds,
    )
    made = 0
    try:
        first = next(rows, None)
        if first is None:
            raise UnusableInputError(
                f"no task was made of {options.path}: there is no mistake that at least one and at "
                "most half of its tests notice. Do they import the code from this repository, "
                "rather than an installed copy of it?"
            )
        with out.open("w", encoding="utf-8") as file:
            for row in itertools.chain([first], rows):
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
                file.flush()
                made += 1
                print(f"{row['instance_id']}  {len(row['FAIL_TO_PASS'])} tests notice", flush=True)
    except SandboxGymError as error:
        raise UnusableInputError(str(error)) from error
    except OSError as error:
        raise UnusableInputError(f"the tasks cannot be written: {error}") from error
    print(f"{made} tasks in {out}")
    return OK


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("has to be at least 1")
    return number
