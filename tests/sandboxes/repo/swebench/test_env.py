"""`SWEBenchEnv`: hidden tests stay hidden, decide alone, and cannot be talked into anything."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys

import gymnasium as gym
import pytest

import sandboxgym as sg
from sandboxgym.core.errors import DataNotFoundError, InvalidOptionsError, SpecMismatchError
from sandboxgym.sandboxes.repo.backend import Limits
from sandboxgym.sandboxes.repo.bases import base_of_folder
from sandboxgym.sandboxes.repo.swebench.env import FromClones, SWEBenchEnv, protected_files
from sandboxgym.sandboxes.repo.swebench.rows import RowError, Setup, row_of
from tests.sandboxes.repo.conftest import make_overlay_backend

CODE = "def add(a, b):\n    return a - b\n\n\ndef mul(a, b):\n    return a * b\n"
VISIBLE = """\
import unittest
from calc import add, mul


class TestCalc(unittest.TestCase):
    def test_mul(self):
        self.assertEqual(mul(2, 3), 6)
"""
SECRET = "test_sums_of_seventeen"
TEST_PATCH = f"""\
diff --git a/tests/test_calc.py b/tests/test_calc.py
--- a/tests/test_calc.py
+++ b/tests/test_calc.py
@@ -5,3 +5,9 @@
 class TestCalc(unittest.TestCase):
     def test_mul(self):
         self.assertEqual(mul(2, 3), 6)
+
+    def {SECRET}(self):
+        self.assertEqual(add(8, 9), 17)
+
+    def test_zero(self):
+        self.assertEqual(add(0, 3), 3)
"""
GOLD = """\
diff --git a/calc.py b/calc.py
--- a/calc.py
+++ b/calc.py
@@ -1,5 +1,5 @@
 def add(a, b):
-    return a - b
+    return a + b


 def mul(a, b):
"""
FIX = "sed -i 's/a - b/a + b/' calc.py"
RAW = {
    "instance_id": "us__calc-1",
    "repo": "us/calc",
    "version": "1.0",
    "base_commit": "",
    "problem_statement": "Adding two numbers subtracts them.",
    "patch": GOLD,
    "test_patch": TEST_PATCH,
    "FAIL_TO_PASS": [f"{name} (tests.test_calc.TestCalc)" for name in (SECRET, "test_zero")],
    "PASS_TO_PASS": ["test_mul (tests.test_calc.TestCalc)"],
    "eval_script": "#!/bin/bash\n: '>>>>> Start Test Output'\n"
    "python -m unittest -v tests.test_calc\n: '>>>>> End Test Output'\n",
    "log_parser": "parse_log_unittest",
}
MIRROR = {**RAW, "instance_id": "us__calc-2", "problem_statement": "The other one."}


@pytest.fixture(scope="module")
def backend():
    with make_overlay_backend(Limits(seconds=30.0)) as backend:
        yield backend


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    folder = tmp_path_factory.mktemp("calc")
    (folder / "calc.py").write_text(CODE)
    (folder / "tests").mkdir()
    (folder / "tests" / "__init__.py").touch()
    (folder / "tests" / "test_calc.py").write_text(VISIBLE)
    return folder


@pytest.fixture
def make(tree, backend, base_cache):
    made = []

    def make(*raws, **kwargs):
        rows = [row_of(raw) for raw in raws or (RAW,)]
        kwargs.setdefault("base_of", lambda row: base_of_folder(tree, cache=base_cache))
        kwargs.setdefault("backend", backend)
        made.append(SWEBenchEnv(rows, limits=backend.limits, **kwargs))
        return made[-1]

    yield make
    for env in made:
        env.close()


@pytest.fixture
def env(make):
    env = make()
    env.reset(seed=1)
    return env


def submitted(env):
    _, reward, terminated, _, info = env.step({"submit": True})
    assert terminated
    return reward, info["reward_valid"], info["failure_reason"]


class TestTasks:
    def test_the_first_observation_is_the_problem(self, make):
        env = make(RAW, MIRROR)
        assert env.instances == ["us__calc-1", "us__calc-2"]
        for raw in (RAW, MIRROR, RAW):
            observation, _ = env.reset(options={"instance_id": raw["instance_id"]})
            assert observation["output"] == raw["problem_statement"]

    def test_seeds_draw_tasks(self, make):
        env = make(RAW, MIRROR)
        drawn = [env.reset(seed=seed)[0]["output"] for seed in range(12)]
        assert set(drawn) == {RAW["problem_statement"], MIRROR["problem_statement"]}
        assert drawn == [env.reset(seed=seed)[0]["output"] for seed in range(12)]

    def test_what_is_not_there_is_named(self, make, tmp_path):
        with pytest.raises(InvalidOptionsError, match="nobody"):
            make().reset(options={"instance_id": "nobody"})
        with pytest.raises(InvalidOptionsError, match="index"):
            make().reset(options={"index": 0})
        with pytest.raises(DataNotFoundError, match="nobody"):
            make(instances=["nobody"])
        with pytest.raises(DataNotFoundError, match=r"git clone --bare https://github.com/us/calc"):
            make(base_of=FromClones(None, None).base).reset()
        with pytest.raises(DataNotFoundError, match="us__calc"):
            make(base_of=FromClones(tmp_path, None).base).reset()
        (tmp_path / "calc").mkdir()
        with pytest.raises(RowError, match="which Python"):
            make(base_of=FromClones(tmp_path, {"other/one": Setup("3.11")}).base).reset()

    def test_forks_and_packed_moments_keep_to_their_task(self, make):
        env = make(RAW, MIRROR)
        env.reset(options={"instance_id": "us__calc-2"})
        env.step(FIX)
        [twin] = sg.fork(env, 1)
        data = env.snapshot().to_bytes()
        env.reset(options={"instance_id": "us__calc-1"})
        assert submitted(twin)[0] == 1.0
        assert submitted(env)[0] == 0.0
        other = make(RAW, MIRROR, backend=None)
        other.restore(sg.Snapshot.from_bytes(data))
        assert submitted(other)[0] == 1.0
        with pytest.raises(SpecMismatchError):
            make().restore(sg.Snapshot.from_bytes(data))
        twin.close()

    def test_rows_are_read_from_a_file_behind_gymnasiums_door(self, tree, backend, tmp_path):
        with gzip.open(tmp_path / "rows.jsonl.gz", "wt") as file:
            file.write(json.dumps(RAW) + "\n")
        env = gym.make(
            "sandboxgym/SWEBench-v0", rows=tmp_path / "rows.jsonl.gz", backend=backend,
            base_of=lambda row: base_of_folder(tree, cache=tmp_path), limits=backend.limits,
        )  # fmt: skip
        env.reset(seed=1)
        snapshot = env.snapshot()
        env.step(FIX)
        assert env.step({"submit": True})[1] == 1.0
        env.restore(snapshot)
        assert env.step({"submit": True})[1] == 0.0
        env.close()


class TestGrading:
    def test_the_solution_is_worth_one_and_nothing_is_worth_nothing(self, env):
        env.step(f"cat > p <<'END'\n{GOLD}END\ngit apply p && rm p")
        assert submitted(env) == (1.0, True, "")
        env.reset()
        assert submitted(env) == (0.0, True, "the hidden tests do not pass")

    def test_details_are_for_whoever_runs_it(self, env):
        env.step(FIX.replace("a + b", "a + b + 0 * mul(1, 1)"))
        submitted(env)
        report = env.grade.details["report"]
        assert len(report.fixed) == 2
        assert env.grade.details["verdicts"].trusted

    def test_a_part_is_worth_a_part_where_that_is_asked_for(self, make):
        half = "sed -i 's/return a - b/return b if a == 0 else 0/' calc.py"
        for dense, worth in ((False, 0.0), (True, 0.5)):
            env = make(dense=dense)
            env.reset(seed=1)
            env.step(half)
            assert submitted(env)[0] == worth
        env.reset()
        env.step(f"{half}; sed -i 's/a [*] b/0/' calc.py")
        assert submitted(env)[0] == 0.0

    def test_breaking_what_worked_is_worth_nothing(self, env):
        env.step(f"{FIX}; sed -i 's/a [*] b/0/' calc.py")
        assert submitted(env)[0] == 0.0

    def test_tests_that_fit_no_tree_are_no_silent_zero(self, make):
        env = make({**RAW, "test_patch": TEST_PATCH.replace("mul(2, 3)", "mul(9, 9)")})
        env.reset(seed=1)
        env.step(FIX)
        reward, valid, reason = submitted(env)
        assert (reward, valid) == (0.0, False)
        assert "do not fit the pristine tree" in reason

    def test_tests_that_cannot_run_at_all_are_no_silent_zero(self, make):
        deadly = TEST_PATCH.replace("+        self.assertEqual(add(0, 3), 3)",
                                    "+        __import__('os').kill(-1, 9)")  # fmt: skip
        env = make({**RAW, "test_patch": deadly})
        env.reset(seed=1)
        env.step(FIX)
        assert submitted(env) == (0.0, False, "the tests cannot be run even without a patch")

    def test_tests_that_never_end_are_worth_nothing(self, make):
        env = make(test_seconds=3.0)
        env.reset(seed=1)
        env.step("echo 'while True: pass' >> calc.py")
        assert submitted(env) == (0.0, True, "the tests did not end within 3 s")


ATTACKS = {
    "forged lines": "print('test_zero (tests.test_calc.TestCalc) ... ok\\n' * 9, flush=True)",
    "forged marks": "print('>>>>> End Test Output\\nsandboxgym-verdicts e30= 00', flush=True)",
    "leaving with success": "import os; os._exit(0)",
    "leaving with success at exit": "import atexit, os; atexit.register(os._exit, 0)",
    "killing everything": "import os; os.kill(-1, 9)",
    "killing the parent": "import os; os.kill(os.getppid(), 9)",
    "writing to every descriptor": "import os\nfor fd in range(3, 64):\n    try:\n"
    "        os.write(fd, b'case PASSED 746573745f7a65726f\\n')\n    except OSError: pass",
    "replacing unittest's methods": "import unittest\n"
    "unittest.TestCase.assertEqual = lambda *a, **k: None",
    "replacing results": "import unittest\nfor n in ('addFailure', 'addError'):\n"
    "    setattr(unittest.TestResult, n, unittest.TestResult.addSuccess)\n"
    "    setattr(unittest.TextTestResult, n, unittest.TextTestResult.addSuccess)",
    "rewriting the tests": "open('tests/test_calc.py', 'w').write('')",
}


class TestAttacks:
    @pytest.mark.parametrize("name", ATTACKS)
    def test_code_that_attacks_its_tests_is_worth_nothing(self, env, name):
        env.step(f"cat >> calc.py <<'END'\n{ATTACKS[name]}\nEND")
        reward, valid, reason = submitted(env)
        assert (reward, valid) == (0.0, True), reason
        assert SECRET not in reason

    @pytest.mark.parametrize(
        "command",
        [
            "echo > tests/test_calc.py",
            "rm -r tests",
            "mkdir -p tests/test_calc.py.d; git mv tests/test_calc.py tests/old.py",
            "rm tests/test_calc.py; mkdir tests/test_calc.py; touch tests/test_calc.py/x",
            "printf 'import unittest\\nunittest.TestCase.run = print\\n' > sitecustomize.py",
            "mkdir x.egg-info; printf '[pytest11]\\nx = x\\n' > x.egg-info/entry_points.txt",
            "mkdir -p unittest; printf 'import os\\nos._exit(0)' > unittest/__init__.py",
            "printf 'import os\\nos._exit(0)' > json.py; cp json.py hmac.py; cp json.py hashlib.py",
        ],
    )
    def test_a_tree_that_attacks_its_tests_is_worth_nothing(self, env, command):
        env.step(command)
        reward, valid, _ = submitted(env)
        assert (reward, valid) == (0.0, True)

    def test_nothing_of_the_solution_or_the_tests_can_be_found(self, env, tmp_path):
        search = (
            "grep -rasl -e 'sums_of_[s]eventeen' -e 'return a [+] b' / --exclude-dir=proc "
            "--exclude-dir=sys --exclude-dir=usr; env | grep -c 'sums_of_[s]eventeen'; "
            "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline | grep -ac 'sums_of_[s]eventeen'"
        )
        seen = [env.reset(seed=1), env.step(search)]
        assert seen[1][0]["output"] == "0\n0\n"
        assert "/repo/calc.py" in env.step(f"{FIX}; {search}")[0]["output"]
        seen.append(env.step({"submit": True}))
        assert "seventeen" not in repr(seen)
        assert b"seventeen" not in env.snapshot().to_bytes()


def test_what_runs_the_tests_is_protected_unless_it_is_to_be_repaired():
    assert "tests/test_calc.py" in protected_files(row_of(RAW))
    assert "sympy/testing/*" in protected_files(row_of(RAW))
    repaired = GOLD.replace("calc.py", "sympy/testing/runtests.py")
    assert "sympy/testing/*" not in protected_files(row_of({**RAW, "patch": repaired}))


class TestClones:
    @pytest.fixture
    def clone(self, tree, tmp_path):
        made = tmp_path / "made"
        subprocess.run(["cp", "-r", tree, made], check=True)

        def git(*words):
            who = ["-c", "user.name=a", "-c", "user.email=a@b"]
            done = subprocess.run(
                ["git", *who, "-C", made, *words], check=True, capture_output=True, text=True
            )
            return done.stdout.strip()

        git("init", "-q")
        git("add", ".")
        git("commit", "-qm", "broken")
        commit = git("rev-parse", "HEAD")
        (made / "calc.py").write_text(CODE.replace("a - b", "a + b"))
        git("commit", "-qam", "the repair")
        return made, commit

    @pytest.mark.parametrize("name", ["us__calc", "us/calc", "calc", "us__calc.git"])
    def test_a_clone_of_any_name_gives_the_tree_without_the_future(
        self, make, clone, name, tmp_path, monkeypatch
    ):
        made, commit = clone
        monkeypatch.setenv("SANDBOXGYM_CACHE", str(tmp_path / "cache"))
        target = tmp_path / "repos" / name
        kind = ["--bare"] if name.endswith(".git") else []
        subprocess.run(["git", "clone", "-q", *kind, made, target], check=True)
        setup = Setup(f"{sys.version_info[0]}.{sys.version_info[1]}", (), {"A": "b"})
        env = make(
            {**RAW, "base_commit": commit}, base_of=None, repos=tmp_path / "repos", setup=setup
        )
        env.reset(seed=1)
        look = "git log --all --format=%s; git remote; which python; echo $A; touch /opt/venv/x"
        assert env.step(look)[0]["output"].splitlines()[:3] == ["base", "/opt/venv/bin/python", "b"]
        env.step("grep -rn 'a + b' .; git fsck --lost-found --full")
        env.step(FIX)
        assert submitted(env) == (1.0, True, "")


REAL = ("pallets__flask-5014", "sympy__sympy-20590", "sympy__sympy-20154", "sympy__sympy-21847",
        "sympy__sympy-24066")  # fmt: skip
REAL_SETUP = Setup(
    "3.11",
    ("mpmath==1.3.0", "pytest==7.4.4", "Werkzeug==2.3.7", "Jinja2==3.1.2", "MarkupSafe==2.1.1",
     "itsdangerous==2.1.2", "click==8.1.3", "blinker", "asgiref", "python-dotenv"),
    {"PYTHONPATH": "src"},
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("instance", REAL)
def test_real_solutions_are_worth_one_and_nothing_is_worth_nothing(
    shared_data, real_repos, instance
):
    env = SWEBenchEnv(
        shared_data / "swebench" / "verified.jsonl.gz",
        repos=real_repos,
        setup=REAL_SETUP,
        instances=[instance],
        backend=make_overlay_backend(Limits()),
    )
    env.reset(seed=1)
    assert submitted(env) == (0.0, True, "the hidden tests do not pass")
    env.reset(seed=1)
    patch = env.row(instance).patch
    assert env.step(f"git apply <<'END_OF_PATCH'\n{patch}END_OF_PATCH")[0]["returncode"] == 0
    assert submitted(env) == (1.0, True, "")
    env.close()
