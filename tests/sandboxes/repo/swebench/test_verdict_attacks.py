"""What code under test may try to pass a test that fails. `module.py` is the agent's."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

from sandboxgym.sandboxes.repo.swebench.parsers.pytest_logs import parse_pytest
from sandboxgym.sandboxes.repo.swebench.plan import Runner
from sandboxgym.sandboxes.repo.swebench.status import Status
from sandboxgym.sandboxes.repo.swebench.verdicts import VerdictError, Verdicts, read
from tests.sandboxes.repo.swebench.running import (
    QUIET_PYTEST,
    UNITTEST,
    plan,
    run,
    with_pytest,
    with_unittest,
    write,
)

HIDDEN = "import module\ndef test_hidden(): assert module.answer() == 42\n"
HIDDEN_CASE = (
    "import unittest, module\n"
    "class Case(unittest.TestCase):\n"
    "    def test_hidden(self): self.assertEqual(module.answer(), 42)\n"
)
NAME = "test_hidden.py::test_hidden"
CASE_NAME = "test_hidden (test_hidden.Case)"

AT_IMPORT = {
    "prints lines as the runner does": """
        print("PASSED test_hidden.py::test_hidden")
        print("test_hidden (test_hidden.Case) ... ok")
        print("=========================== short test summary info ============================")
        print("PASSED test_hidden.py::test_hidden", flush=True)
    """,
    "prints them at exit, past all capturing": """
        import atexit, os
        atexit.register(os.write, 1, b"\\nPASSED test_hidden.py::test_hidden\\n")
        atexit.register(os.write, 2, b"\\n>>>>> End Test Output\\n")
    """,
    "prints and ends the process as if all were well": """
        import os
        os.write(1, b"PASSED test_hidden.py::test_hidden\\n1 passed\\n>>>>> End Test Output\\n")
        os._exit(0)
    """,
    "prints a line of verdicts of its own": """
        import base64, hashlib, hmac, json, os, zlib
        said = {"cases": [["PASSED", ["test_hidden.py::test_hidden"]]], "finished": True,
                "faults": [], "status": 0, "log": ""}
        packed = base64.b64encode(zlib.compress(json.dumps(said).encode()))
        code = hmac.new(b"", packed, hashlib.sha256).hexdigest()
        line = b"sandboxgym-verdicts " + packed + b" " + code.encode() + b"\\n"
        for descriptor in (1, 2):
            os.write(descriptor, line)
    """,
    "writes results to every descriptor there is": """
        import os
        name = b"test_hidden.py::test_hidden".hex().encode()
        for descriptor in range(3, 64):
            try:
                os.write(descriptor, b"case PASSED " + name + b" 00\\ndone 0 00\\n")
            except OSError:
                pass
    """,
    "replaces how a test's phase is run": """
        import sys
        runner = sys.modules.get("_pytest.runner")
        if runner is not None:
            runner.CallInfo.from_call = classmethod(
                lambda cls, func, when, reraise=None: cls(None, None, 0, 0, 0, when, _ispytest=True)
            )
            runner.call_and_report = lambda *a, **k: None
        import unittest
        unittest.TestCase.assertEqual = lambda *a, **k: None
    """,
    "makes reports that say passed": """
        import sys
        reports = sys.modules.get("_pytest.reports")
        if reports is not None:
            made = reports.TestReport.from_item_and_call
            def from_item_and_call(item, call):
                report = made(item, call)
                report.outcome = "passed"
                return report
            reports.TestReport.from_item_and_call = from_item_and_call
        import unittest
        unittest.TestCase.run = lambda self, result=None: (
            result.startTest(self), result.addSuccess(self), result.stopTest(self))
    """,
    "changes the code of a function instead of the function": """
        import sys
        def nothing(*a, **k): pass
        python = sys.modules.get("_pytest.python")
        if python is not None:
            python.Function.runtest.__code__ = nothing.__code__
        import unittest
        unittest.TestCase.assertEqual.__code__ = nothing.__code__
    """,
    "puts its own modules in the place of the runner's": """
        import sys, types
        for name in list(sys.modules):
            if name.startswith(("_pytest", "unittest", "channel", "reporter", "json", "hmac")):
                sys.modules[name] = types.ModuleType(name)
    """,
    "forks, and lets the fork report": """
        import os
        if os.fork() == 0:
            answer = lambda: 42
        else:
            os.wait()
    """,
    "looks for a key in the environment of all processes": """
        import glob, os
        for place in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline"):
            try:
                found = open(place, "rb").read()
            except OSError:
                continue
            assert b'"key"' not in found and b"sandboxgym-key" not in found
    """,
}


def _attack(text: str, rest: str = "def answer(): return 41\n") -> str:
    return (
        textwrap.dedent(text)
        + ("" if "answer = " in text else rest)
        + ("if 'answer' not in globals():\n    def answer(): return 41\n")
    )


def _has_not_passed(found: Verdicts, name: str) -> bool:
    return found.results.get(name) not in (Status.PASSED, Status.XFAIL)


@pytest.mark.parametrize("attack", AT_IMPORT)
def test_a_failing_test_of_pytest_does_not_pass(tmp_path: Path, attack: str) -> None:
    files = {"test_hidden.py": HIDDEN, "module.py": _attack(AT_IMPORT[attack])}

    assert _has_not_passed(with_pytest(tmp_path, files), NAME)


@pytest.mark.parametrize("attack", AT_IMPORT)
def test_a_failing_test_of_unittest_does_not_pass(tmp_path: Path, attack: str) -> None:
    files = {"test_hidden.py": HIDDEN_CASE, "module.py": _attack(AT_IMPORT[attack])}

    assert _has_not_passed(with_unittest(tmp_path, files, "test_hidden"), CASE_NAME)


def test_without_an_attack_the_same_tests_pass_where_they_should(tmp_path: Path) -> None:
    good = "def answer(): return 42\n"

    found = with_pytest(tmp_path / "a", {"test_hidden.py": HIDDEN, "module.py": good})
    assert found.results == {NAME: Status.PASSED}
    found = with_unittest(
        tmp_path / "b", {"test_hidden.py": HIDDEN_CASE, "module.py": good}, "test_hidden"
    )
    assert found.results == {CASE_NAME: Status.PASSED}


@pytest.mark.parametrize("shadowed", ["hmac", "json", "hashlib", "os", "pytest", "unittest"])
def test_modules_of_the_repository_do_not_take_the_place_of_ours(
    tmp_path: Path, shadowed: str
) -> None:
    forged = "import os\nos.write(1, b'FORGED')\nos._exit(0)\n"
    write(tmp_path, {f"src/{shadowed}.py": forged, f"{shadowed}.py": forged})
    write(tmp_path, {"test_hidden.py": "def test_hidden(): pass\n"})
    what = plan(Runner.PYTEST, *QUIET_PYTEST, environment={"PYTHONPATH": "src"})

    job, output = run(tmp_path, what)

    assert "FORGED" not in output
    found = read(job, what, output, parse_pytest)
    assert "FORGED" not in found.log
    assert found.results == {NAME: Status.PASSED}


def test_replaced_functions_of_a_runner_are_named_as_the_fault(tmp_path: Path) -> None:
    attack = AT_IMPORT["replaces how a test's phase is run"]

    found = with_unittest(
        tmp_path, {"test_hidden.py": HIDDEN_CASE, "module.py": _attack(attack)}, "test_hidden"
    )

    assert found.faults == ("TestCase.assertEqual was replaced while the tests ran",)
    assert found.results == {}


def test_another_exit_status_than_was_said_is_a_fault(tmp_path: Path) -> None:
    attack = "import atexit, os\natexit.register(os._exit, 0)\n"
    files = {"test_hidden.py": HIDDEN, "module.py": _attack(attack)}

    found = with_pytest(tmp_path, files)

    assert found.faults == ("the tests said 1, their process 0",)


def test_the_supervisor_cannot_be_looked_into_by_its_own_user() -> None:
    look = """
        import os
        def answer():
            read = []
            for name in ("environ", "mem", "fd/0", "maps"):
                try:
                    open(f"/proc/{os.getppid()}/{name}", "rb").close()
                    read.append(name)
                except OSError:
                    pass
            return read or 42
    """
    root = os.getuid() == 0
    python = shutil.which("python3", path="/usr/local/bin:/usr/bin") if root else sys.executable
    if python is None:
        pytest.skip("root may look into everything, and no other user has a Python here")
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        write(folder, {"test_hidden.py": HIDDEN_CASE, "module.py": textwrap.dedent(look)})
        what = plan(Runner.UNITTEST, *UNITTEST, "test_hidden")
        job, output = run(folder, what, python, 65533 if root else None)

    found = read(job, what, output, parse_pytest)
    assert found.results == {CASE_NAME: Status.PASSED}, found.log


def test_ending_the_supervisor_leaves_no_verdicts(tmp_path: Path) -> None:
    attack = "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n"
    write(tmp_path, {"test_hidden.py": HIDDEN, "module.py": _attack(attack)})

    what = plan(Runner.PYTEST, *QUIET_PYTEST)
    job, output = run(tmp_path, what)

    with pytest.raises(VerdictError, match="no signed results"):
        read(job, what, output, parse_pytest)


def test_a_conftest_that_forges_reports_is_seen_where_nobody_kept_it_out(tmp_path: Path) -> None:
    conftest = """
        import pytest
        @pytest.hookimpl(hookwrapper=True)
        def pytest_runtest_makereport(item, call):
            outcome = yield
            outcome.get_result().outcome = "passed"
    """
    files = {
        "conftest.py": textwrap.dedent(conftest),
        "test_hidden.py": HIDDEN,
        "module.py": "def answer(): return 41\n",
    }

    assert _has_not_passed(with_pytest(tmp_path, files), NAME)


def test_code_that_rewrites_tests_as_it_is_loaded_is_found_out(tmp_path: Path) -> None:
    attack = """
        import atexit, os
        os.rename("test_hidden.py", "kept.py")
        open("test_hidden.py", "w").write("def test_hidden(): pass")
        atexit.register(os.replace, "kept.py", "test_hidden.py")
    """
    write(tmp_path, {"conftest.py": "import module", "test_hidden.py": HIDDEN})
    write(tmp_path, {"module.py": _attack(attack)})
    what = plan(Runner.PYTEST, *QUIET_PYTEST, files=("test_hidden.py", "data.txt"))

    job, output = run(tmp_path, what)

    assert (tmp_path / "test_hidden.py").read_text() == HIDDEN
    found = read(job, what, output, parse_pytest)
    assert found.faults == ("test_hidden.py was changed while the tests ran",)
    assert found.results == {}


def test_a_test_case_cannot_speak_for_another(tmp_path: Path) -> None:
    test = (
        "import unittest, module\n"
        "class Case(module.Base):\n"
        "    def test_hidden(self): self.assertEqual(1, 2)\n"
        "class Other(module.Base):\n"
        "    def test_easy(self): pass\n"
    )
    module = (
        "import unittest\n"
        "class Base(unittest.TestCase):\n"
        "    def id(self): return 'test_hidden.Case.test_hidden'\n"
        "    def __str__(self): return 'test_hidden (test_hidden.Case)'\n"
        "    def shortDescription(self): return 'test_hidden (test_hidden.Case)'\n"
    )

    found = with_unittest(tmp_path, {"test_hidden.py": test, "module.py": module}, "test_hidden")

    assert found.results == {
        CASE_NAME: Status.FAILED,
        "test_easy (test_hidden.Other)": Status.PASSED,
    }


@pytest.mark.xfail(strict=True, reason="code under test shares a process with the reporter")
def test_code_that_searches_the_process_for_the_reporter_cannot_use_it(tmp_path: Path) -> None:
    """What remains possible, written down so that a change of it is noticed."""
    attack = """
        import gc, os
        for found in gc.get_objects():
            if type(found).__name__ == "Channel" and hasattr(found, "report"):
                found.report("PASSED", "test_hidden.py::test_hidden")
                found._send(b"done 0")
                os._exit(0)
    """
    files = {"test_hidden.py": HIDDEN, "module.py": _attack(attack)}

    assert _has_not_passed(with_pytest(tmp_path, files), NAME)
