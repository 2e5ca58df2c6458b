"""What became of the tests in a sandbox, told in a way that printed lines cannot forge.

The tests run in the same process as the code of the agent that they test, so no arrangement there
can be beyond its reach. What is done:

* The results leave the sandbox signed, with a key that comes in by standard input and is held by a
  supervising process which runs no code of the repository and closes itself to others. What is
  printed, exit markers, files, and processes that stay in the background count for nothing.
* The supervisor hears the results over a socket of the test process, each line with a code that
  follows from a token and all lines before. The token is read before code of the repository is
  loaded, is in no environment, and goes to no process that tests start.
* A run whose exit status is another than it said, in which functions of the runner were replaced,
  or test files were changed, has a fault, and all its tests count as failed. Where a run ends
  before its time, tests that it had not come to count as failed.
* The reporter names tests by what they are, not by what they say they are.

What remains possible: code under test that looks for the reporter in its own process (through the
garbage collector, frames or raw memory) can call it as the runner does, or reach into the runner
without leaving a trace at the end of the run; a folder with tests can be swapped for another and
back; code can notice that it is tested, return objects
that are equal to everything, or change the library that a test compares with. SymPy's runner, and
all of pytest where that is the repository, are part of what the patch may change unless the grader
protects them (`RUNNER_FILES`).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import secrets
import shlex
import zlib
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from sandboxgym.core.errors import SandboxGymError
from sandboxgym.sandboxes.repo.swebench.parsers import Parser
from sandboxgym.sandboxes.repo.swebench.plan import Runner, TestPlan
from sandboxgym.sandboxes.repo.swebench.status import Results, Status, note

MARK = "sandboxgym-verdicts"
MAX_OUTPUT = 128 * 2**20
"""Characters of output that the command of a job has to be left; it is one line."""

RUNNER_FILES = (
    "bin/test",
    "sympy/testing/*",
    "sympy/utilities/runtests.py",
    "sympy/utilities/pytest.py",
    "django/test/*",
    "tests/runtests.py",
)
"""Files of repositories that run the tests of these repositories, as patterns for `fnmatch`."""

_START = (
    "import json, sys; job = json.loads(sys.stdin.buffer.read().decode()); "
    "own = {'__name__': 'supervisor'}; "
    "exec(compile(job['supervisor'], 'supervisor', 'exec'), own); own['main'](job)"
)


class VerdictError(SandboxGymError, RuntimeError):
    """A run gave no signed results: it was ended, or its environment cannot run the tests."""


@dataclass(frozen=True)
class Job:
    """A run of tests in a sandbox.

    Attributes:
        command: For the sandbox's shell. Leave it `MAX_OUTPUT` characters of output.
        stdin: Its standard input; the key is in it.
        key: What the results are signed with.
    """

    command: str
    stdin: bytes = field(repr=False)
    key: bytes = field(repr=False)


@dataclass(frozen=True)
class Verdicts:
    """What became of the tests of a run.

    Attributes:
        results: The status of each test. Without any where the run has a fault.
        trusted: Whether they were reported; else they are read from what was printed.
        finished: Whether the runner came to its end.
        faults: Why nothing of the run counts.
        log: The end of what was printed; it may have hidden tests in it.
    """

    results: Results
    trusted: bool
    finished: bool
    faults: tuple[str, ...]
    log: str = field(repr=False)


def job_of(plan: TestPlan, workdir: str, python: str = "python3") -> Job:
    """How to run the tests of a plan.

    Args:
        plan: What to run.
        workdir: The repository's folder in the sandbox.
        python: The interpreter that the tests need, there.
    """
    key = secrets.token_bytes(32)
    told = {
        "key": key.hex(),
        "supervisor": _text("supervisor"),
        "channel": _text("channel"),
        "reporter": _text(f"{plan.runner.value}_reporter"),
        "arguments": list(plan.arguments),
        "files": [name for name in plan.files if name.endswith(".py")],
        "environment": dict(plan.environment),
    }
    command = f"cd {shlex.quote(workdir)} && {python} -I -c {shlex.quote(_START)}"
    return Job(command, json.dumps(told).encode(), key)


def read(job: Job, plan: TestPlan, output: str, parser: Parser) -> Verdicts:
    """What a run says.

    Args:
        job: The run.
        plan: What was run.
        output: What its command printed.
        parser: For the log, where the runner is one that cannot be made to report.

    Raises:
        VerdictError: Nothing in the output is signed with the job's key.
    """
    signed = _signed(job, output)
    faults = tuple(signed["faults"])
    trusted = plan.runner is not Runner.OTHER
    results: Results = {}
    if not faults and trusted:
        for status, names in signed["cases"]:
            for name in names:
                note(results, name, Status(status))
    elif not faults:
        results = parser(signed["log"])
    return Verdicts(results, trusted, signed["finished"], faults, signed["log"])


def _text(name: str) -> str:
    package = resources.files("sandboxgym.sandboxes.repo.swebench.reporters")
    return package.joinpath(f"{name}.py").read_text(encoding="utf-8")


def _signed(job: Job, output: str) -> Any:
    for line in reversed(output.splitlines()):
        mark, _, rest = line.partition(" ")
        packed, _, code = rest.partition(" ")
        expected = hmac.new(job.key, packed.encode(), hashlib.sha256).hexdigest()
        if mark == MARK and hmac.compare_digest(expected.encode(), code.strip().encode()):
            try:
                return json.loads(zlib.decompress(base64.b64decode(packed)))
            except (binascii.Error, zlib.error, ValueError) as error:
                raise VerdictError(f"signed results cannot be read: {error}") from error
    shown = output[-2000:].strip() or "nothing was printed"
    raise VerdictError(f"the tests gave no signed results; the end of the output: {shown}")
