"""Rows of `swebench` 4 and before, which do not say how they are tested: that was code, by project.

What is written here is the part that matters where the environment is already there: which command
runs the test files of `test_patch`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

_PYTEST = "pytest -rA"
_PYTEST_3 = "pytest -rA -vv -o console_output_style=classic --tb=no"
_COMMANDS = {
    "django/django": "./tests/runtests.py --verbosity 2 --settings=test_sqlite --parallel 1",
    "mwaskom/seaborn": "pytest --no-header -rA",
    "sphinx-doc/sphinx": "tox --current-env -epy39 -v --",
    "sympy/sympy": (
        "PYTHONWARNINGS='ignore::UserWarning,ignore::SyntaxWarning' bin/test -C --verbose"
    ),
}
_PARSERS = {"scikit-learn": "scikit", "pvlib-python": "pvlib"}
_NOT_CODE = re.compile(r"\.(json|png|csv|txt|md|jpg|jpeg|pkl|yml|yaml|toml|lock|html|svg)$")
_END_OF_PATCH = "END_OF_TEST_PATCH"


def converted(raw: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A row of the old format in the new one.

    Raises:
        RowError: A field that is needed for it is missing or no string.
    """
    repo, base, test_patch = (
        _text(raw, name, key) for key in ("repo", "base_commit", "test_patch")
    )
    project = repo.partition("/")[2]
    return {
        **raw,
        "image": _image(_text(raw, name, "instance_id")),
        "eval_script": _script(_command(repo, raw.get("version")), base, repo, test_patch),
        "log_parser": f"parse_log_{_PARSERS.get(project, project)}",
        "eval_type": "pass_and_fail",
    }


def _text(raw: Mapping[str, Any], name: str, key: str) -> str:
    from sandboxgym.sandboxes.repo.swebench.rows import RowError

    value = raw.get(key)
    if not isinstance(value, str):
        raise RowError(f"{name}: field {key!r} is missing or no string")
    return value


def _image(instance_id: str) -> str:
    return f"swebench/sweb.eval.x86_64.{instance_id.lower().replace('__', '_1776_')}:latest"


def _command(repo: str, version: Any) -> str:
    """The command, but for the test files; the pytest of old versions says less in its summary."""
    if (repo, version) == ("astropy/astropy", "1.3"):
        return _PYTEST_3
    return _COMMANDS.get(repo, _PYTEST)


def _script(command: str, base: str, repo: str, test_patch: str) -> str:
    """Put the test files back, apply the tests, run them between the marks."""
    from sandboxgym.sandboxes.repo.swebench.plan import END, START, files_of

    new = set(re.findall(r"^--- /dev/null\n\+\+\+ b/(.+)$", test_patch, re.MULTILINE))
    gone = set(re.findall(r"^rename from (.+)$", test_patch, re.MULTILINE))
    files = files_of(test_patch)
    old = " ".join(shlex.quote(file) for file in files if file not in new)
    back = f"git checkout {base} {old}\n" if old else ""
    tests = " ".join(
        _argument(repo, file) for file in files if file not in gone and not _NOT_CODE.search(file)
    )
    return (
        "#!/bin/bash\nset -uxo pipefail\n"
        "source /opt/miniconda3/bin/activate\nconda activate testbed\ncd /testbed\n"
        f"{back}git apply -v - <<'{_END_OF_PATCH}'\n{test_patch.rstrip()}\n\n{_END_OF_PATCH}\n"
        f": '{START}'\n{command} {tests}\n: '{END}'\n{back}"
    )


def _argument(repo: str, file: str) -> str:
    if repo != "django/django":
        return shlex.quote(file)
    return shlex.quote(file.removesuffix(".py").removeprefix("tests/").replace("/", "."))
