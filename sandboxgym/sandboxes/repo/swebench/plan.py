"""What to run for a row without its image: its test command, out of its script for the image.

The script activates an environment, installs the package, applies the tests and runs them. Here the
environment is another one, the tests are applied by the grader, and commits have other names.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from sandboxgym.sandboxes.repo.swebench.rows import Row, RowError

START = ">>>>> Start Test Output"
END = ">>>>> End Test Output"

_HEREDOC = re.compile(
    r"^git apply [^\n]*<<'(?P<end>\w+)'\n.*?^(?P=end)\n", re.DOTALL | re.MULTILINE
)
_MARKED = re.compile(
    rf"^[^\n]*{START}[^\n]*\n(?P<command>.*?)^[^\n]*{END}", re.DOTALL | re.MULTILINE
)
_EXPORT = re.compile(r"export (?P<name>[A-Za-z_]\w*)=(?P<value>.*)")
_ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_]\w*)=(?P<value>.*)", re.DOTALL)
_OF_THE_IMAGE = re.compile(
    r"#!|set -|source \S*/activate|conda activate|cd /testbed$"
    r"|git (config|status|show|checkout|-c core\.fileMode=false diff)\b"
)
_CHANGED_FILE = re.compile(r"^diff --git (?P<old>\"?a/.*?) (?P<new>\"?b/.*)$", re.MULTILINE)


class Runner(Enum):
    """Who runs the tests. Each is told in its own way to report what became of them."""

    PYTEST = "pytest"
    UNITTEST = "unittest"
    SYMPY = "sympy"
    OTHER = "other"


@dataclass(frozen=True)
class TestPlan:
    """How the tests of a row are run.

    Attributes:
        runner: Who runs them.
        arguments: The command, as words: of pytest what follows `pytest`, of unittest and SymPy a
            script or `-m` and a module, with its arguments; of others the whole command.
        environment: Variables for it, beside those of the sandbox.
        preparation: Commands that the script runs before in the image, such as an installation;
            where the environment is complete they are not needed.
        files: What the row's tests consist of: the agent may not change these.
    """

    __test__ = False  # Not a test case, whatever pytest may think of its name.

    runner: Runner
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    preparation: tuple[str, ...]
    files: tuple[str, ...]


def plan_of(row: Row) -> TestPlan:
    """What a row's script comes to without its image.

    Raises:
        RowError: The script does not mark its tests, or runs several commands there.
    """
    script = _HEREDOC.sub("", row.eval_script)  # A patch may have anything in it, marks too.
    marked = _MARKED.search(script)
    if marked is None:
        raise RowError(f"{row.instance_id}: field 'eval_script' does not mark its test command")
    exported, preparation = _before_the_tests(script[: marked.start()])
    assigned, words = _command(row, marked["command"])
    runner, arguments = _runner(words)
    environment = {**_version(row), **exported, **assigned}
    if row.setup is not None:
        environment.update(row.setup.environment)
    return TestPlan(
        runner, arguments, MappingProxyType(environment), preparation, files_of(row.test_patch)
    )


def script_for_image(row: Row) -> str:
    """The row's script for its image, in a repository whose base commit has another name."""
    if not row.base_commit:
        return row.eval_script
    return re.sub(rf"\b{row.base_commit}\b", "HEAD", row.eval_script)


def files_of(patch: str) -> tuple[str, ...]:
    """The files that a patch changes, makes or deletes; both names of one that it renames."""
    names: dict[str, None] = {}
    for changed in _CHANGED_FILE.finditer(patch):
        for name in (changed["old"], changed["new"]):
            names[_unquoted(name)[2:]] = None
    return tuple(names)


def _unquoted(name: str) -> str:
    if not name.startswith('"'):
        return name
    octal = re.sub(
        r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), name.strip('"').replace('\\"', '"')
    )
    return octal.encode("latin-1").decode("utf-8", "surrogateescape")


def _version(row: Row) -> dict[str, str]:
    """For packages that ask git for their version, which an orphan commit cannot tell."""
    if not re.fullmatch(r"\d+(\.\d+)*", row.version):
        return {}
    return {"SETUPTOOLS_SCM_PRETEND_VERSION": row.version}


def _before_the_tests(script: str) -> tuple[dict[str, str], tuple[str, ...]]:
    exported: dict[str, str] = {}
    preparation = []
    for line in filter(None, (line.strip() for line in script.split("\n"))):
        export = _EXPORT.fullmatch(line)
        if export is not None:
            exported[export["name"]] = "".join(shlex.split(export["value"]))
        elif not _OF_THE_IMAGE.match(line):
            preparation.append(line)
    return exported, tuple(preparation)


def _command(row: Row, text: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """The variables that are set in front of the command, and its words."""
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) != 1:
        raise RowError(
            f"{row.instance_id}: field 'eval_script' has {len(lines)} test commands; one is known "
            "how to be run without an image"
        )
    words = shlex.split(lines[0])
    assigned = {}
    while words and (assignment := _ASSIGNMENT.fullmatch(words[0])):
        assigned[assignment["name"]] = assignment["value"]
        words = words[1:]
    if not words:
        raise RowError(f"{row.instance_id}: field 'eval_script' has no test command")
    return assigned, tuple(words)


def _runner(words: tuple[str, ...]) -> tuple[Runner, tuple[str, ...]]:
    first, rest = words[0], words[1:]
    if first in ("python", "python3") and rest[:1] == ("-m",):
        if rest[1:2] == ("pytest",):
            return Runner.PYTEST, rest[2:]
        if rest[1:2] == ("unittest",):
            return Runner.UNITTEST, rest
    if first in ("pytest", "py.test"):
        return Runner.PYTEST, rest
    if first == "tox" and "--" in rest:
        # Of tox only the arguments for pytest are of use: environments are made elsewhere.
        return Runner.PYTEST, ("-rA", *rest[rest.index("--") + 1 :])
    if first.endswith("runtests.py"):
        return Runner.UNITTEST, words
    if first == "bin/test":
        return Runner.SYMPY, words
    return Runner.OTHER, words
