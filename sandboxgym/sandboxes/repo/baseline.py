"""A scripted agent for bug-fix tasks: it searches, reads, tries edits, runs tests, submits.

It acts through commands alone, as any agent does, and knows no more than it is told. Its edits are
the mistakes of `tasks.mutations`: what undoes a small mistake is most often another one of these.
It is there for tests and demos, and as the least that a model should do better than.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from sandboxgym.sandboxes.repo.tasks.mutations import Mutation, mutations

TRIES = 36
"""Edits that are tried in an episode; an episode has 50 steps."""

MAX_READ = 6
_EXAMPLE = "/tmp/expected.txt"
_EXPECTED = re.compile(r"^Expected:\n\n```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"^(?:>>>|\.\.\.) (.*)$", re.MULTILINE)
_CHECK = (
    f"timeout 10 python3 -m doctest {_EXAMPLE} >/dev/null 2>&1 && "
    "timeout 20 python3 -m unittest >/dev/null 2>&1"
)
_KINDS = (
    "comparison",
    "off by one",
    "constant",
    "function",
    "arithmetic",
    "boolean",
    "variable",
    "negation",
)
"""Which edits come first; kinds that are not here come last."""


@dataclass(frozen=True)
class Edit:
    """Something to try.

    Attributes:
        file: Which file to change.
        mutation: How.
    """

    file: str
    mutation: Mutation

    def command(self) -> str:
        """A command that makes the edit."""
        start, end, text = self.mutation.start, self.mutation.end, self.mutation.text
        script = (
            f"p = {self.file!r}; s = open(p, newline='').read(); "
            f"open(p, 'w', newline='').write(s[:{start}] + {text!r} + s[{end}:])"
        )
        return f"python3 -c {shlex.quote(script)}"


@dataclass(frozen=True)
class Outcome:
    """How an episode went.

    Attributes:
        reward: Of the submission.
        edit: What was submitted; None where no edit passed the checks.
        steps: How many steps it took.
    """

    reward: float
    edit: Edit | None
    steps: int


class Agent:
    """Works on the episode of an environment such as `sandboxgym/SWEBench-v0`.

    Args:
        env: The environment, which was reset.
        statement: What the first observation said.
    """

    def __init__(self, env: Any, statement: str) -> None:
        self.env = env
        self.statement = statement
        self.steps = 0

    def run(self, command: str) -> tuple[str, int]:
        """Run a command; gives what it printed, and its exit status."""
        observation = self.env.step(command)[0]
        self.steps += 1
        return observation["output"], observation["returncode"]

    def study(self) -> list[Edit]:
        """Write the example of the statement down, find the code that it is about, and read that.

        Returns:
            Edits to try, the most likely first.
        """
        found = _EXPECTED.search(self.statement)
        example = found[1] if found else ""
        self.run(f"cat > {_EXAMPLE} <<'END_OF_EXAMPLE'\n{example}END_OF_EXAMPLE")
        names = sorted(set(re.findall(r"[A-Za-z_]\w+", " ".join(_CODE.findall(example)))))
        defined = "|".join(names) or "."
        listed, _ = self.run(f"grep -rlE '(def|class) ({defined})\\b' --include='*.py' .")
        others, _ = self.run("git ls-files '*.py'")
        files = [str(PurePosixPath(file)) for file in listed.split()]
        files += [file for file in others.split() if file not in files]
        edits = []
        for place, file in enumerate([file for file in files if not _is_of_tests(file)][:MAX_READ]):
            text, _ = self.run(f"cat {shlex.quote(file)}")
            edits += [(place, Edit(file, mutation)) for mutation in _mutations(text)]
        edits.sort(key=lambda edit: _rank(edit[0], edit[1], names))
        return [edit for _, edit in edits]

    def attempt(self, edit: Edit) -> bool:
        """Make an edit and run the example and the tests; it stays if they pass."""
        undo = f"git checkout -q -- {shlex.quote(edit.file)}"
        _, status = self.run(f"{edit.command()} && {_CHECK} || {{ {undo}; false; }}")
        return status == 0

    def submit(self) -> float:
        """End the episode; gives its reward."""
        self.steps += 1
        return float(self.env.step({"submit": True})[1])


def solve(env: Any, instance_id: str, tries: int = TRIES) -> Outcome:
    """Play an episode.

    Args:
        env: An environment such as `sandboxgym/SWEBench-v0`.
        instance_id: The task.
        tries: How many edits are tried before the agent submits what it has, which is nothing.
    """
    observation, _ = env.reset(options={"instance_id": instance_id})
    agent = Agent(env, observation["output"])
    edits = agent.study()
    edit = _first(agent.attempt, edits[:tries])
    return Outcome(agent.submit(), edit, agent.steps)


def _first(passes: Callable[[Edit], bool], edits: list[Edit]) -> Edit | None:
    return next((edit for edit in edits if passes(edit)), None)


def _mutations(text: str) -> list[Mutation]:
    try:
        return mutations(text)
    except SyntaxError:  # Not all of the file was shown.
        return []


def _rank(place: int, edit: Edit, names: list[str]) -> tuple[bool, int, int]:
    """Functions that the example names come first, then likely kinds, then files as found."""
    kind = edit.mutation.kind
    named = any(part in names for part in _parts(edit.mutation.function))
    return not named, _KINDS.index(kind) if kind in _KINDS else len(_KINDS), place


def _parts(function: str) -> Iterator[str]:
    """The function's own name; of a constructor and its like that of the class."""
    owner, _, name = function.rpartition(".")
    yield name
    if name.startswith("__"):
        yield owner


def _is_of_tests(file: str) -> bool:
    return file.startswith("test") or "/test" in file
