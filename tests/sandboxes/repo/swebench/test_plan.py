from __future__ import annotations

import pytest

from sandboxgym.sandboxes.repo.swebench.plan import Runner, files_of, plan_of, script_for_image
from sandboxgym.sandboxes.repo.swebench.rows import RowError, Setup, row_of
from tests.sandboxes.repo.swebench.test_rows import RAW

SCRIPT = """\
#!/bin/bash
set -uxo pipefail
source /opt/miniconda3/bin/activate
conda activate testbed
cd /testbed
export LANG=en_US.UTF-8
export NAMED="two words"
git config --global --add safe.directory /testbed
git status
git show
git -c core.fileMode=false diff {base}
python -m pip install -e .[test]
git checkout {base} tests/test_thing.py
git apply -v - <<'EOF_1'
+export FORGED=1
+: '>>>>> Start Test Output'
EOF_1
: '>>>>> Start Test Output'
{command}
: '>>>>> End Test Output'
git checkout {base} tests/test_thing.py
"""


def _row(command: str = "pytest -rA tests/test_thing.py", **more: object):  # type: ignore[no-untyped-def]
    script = SCRIPT.format(base=RAW["base_commit"], command=command)
    return row_of({**RAW, "eval_script": script, **more})


def test_what_belongs_to_the_image_is_dropped_and_the_rest_kept() -> None:
    plan = plan_of(_row())

    assert plan.runner is Runner.PYTEST
    assert plan.arguments == ("-rA", "tests/test_thing.py")
    assert plan.preparation == ("python -m pip install -e .[test]",)
    assert plan.files == ("tests/test_thing.py",)
    assert plan.environment == {
        "LANG": "en_US.UTF-8",
        "NAMED": "two words",
        "SETUPTOOLS_SCM_PRETEND_VERSION": "1.2",
    }


def test_the_environment_of_a_setup_counts_most() -> None:
    setup = {"python": "3.11", "environment": {"LANG": "C", "PYTHONPATH": "src"}}
    row = _row(setup=setup)

    assert row.setup == Setup("3.11", (), setup["environment"])  # type: ignore[arg-type]
    assert plan_of(row).environment["LANG"] == "C"
    assert plan_of(row).environment["PYTHONPATH"] == "src"


@pytest.mark.parametrize(
    ("command", "runner", "arguments"),
    [
        ("pytest 'a b.py'", Runner.PYTEST, ("a b.py",)),
        ("python -m pytest -q x.py", Runner.PYTEST, ("-q", "x.py")),
        ("tox --current-env -epy39 -v -- tests/a.py", Runner.PYTEST, ("-rA", "tests/a.py")),
        ("python3 -m unittest -v a", Runner.UNITTEST, ("-m", "unittest", "-v", "a")),
        ("./tests/runtests.py a.b", Runner.UNITTEST, ("./tests/runtests.py", "a.b")),
        ("W='x y' bin/test -C a.py", Runner.SYMPY, ("bin/test", "-C", "a.py")),
        ("make test", Runner.OTHER, ("make", "test")),
    ],
)
def test_each_runner_is_known_by_its_command(
    command: str, runner: Runner, arguments: tuple[str, ...]
) -> None:
    plan = plan_of(_row(command))

    assert (plan.runner, plan.arguments) == (runner, arguments)
    assert plan.environment.get("W") == ("x y" if "W=" in command else None)


@pytest.mark.parametrize("command", ["pytest a\npytest b", "A=1", ""])
def test_what_is_no_single_command_is_refused_by_the_name_of_the_row(command: str) -> None:
    with pytest.raises(RowError, match="owner__thing-7: field 'eval_script'"):
        plan_of(_row(command))


def test_a_script_without_marks_is_refused() -> None:
    with pytest.raises(RowError, match="does not mark"):
        plan_of(row_of({**RAW, "eval_script": "pytest"}))


def test_a_script_for_the_image_speaks_of_no_commit_that_is_gone() -> None:
    script = script_for_image(_row())

    assert RAW["base_commit"] not in script
    assert "git checkout HEAD tests/test_thing.py" in script


def test_files_of_a_patch_have_both_names_of_a_rename_and_odd_names() -> None:
    patch = (
        "diff --git a/old.py b/new.py\nrename from old.py\nrename to new.py\n"
        "diff --git a/with space.py b/with space.py\n"
        'diff --git "a/\\303\\251.py" "b/\\303\\251.py"\n'
    )

    assert files_of(patch) == ("old.py", "new.py", "with space.py", "é.py")
