"""Writes a broken tree down as a row in SWE-bench's format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sandboxgym.sandboxes.repo.bases import git
from sandboxgym.sandboxes.repo.swebench.plan import END, START
from sandboxgym.sandboxes.repo.swebench.rows import PASS_AND_FAIL
from sandboxgym.sandboxes.repo.tasks.making import Broken
from sandboxgym.sandboxes.repo.tasks.running import Framework

_DIFF = ("diff", "--no-color", "--no-ext-diff", "--no-renames", "--full-index", "--unified=3")
_BACKWARDS = ("-R", "--src-prefix=b/", "--dst-prefix=a/")  # git swaps the prefixes as well


def row(
    broken: Broken, tree: Path, framework: Framework, *, name: str, repo: str, statement: str
) -> dict[str, Any]:
    """The fields of a task.

    Args:
        broken: What is broken, and which tests notice.
        tree: The whole repository, with nothing uncommitted; it is left so.
        framework: What runs its tests.
        name: Of the task.
        repo: As owner/name.
        statement: What the agent is told.
    """
    patches = _patches(broken, tree)
    return {
        "instance_id": name,
        "repo": repo,
        "version": "",
        "base_commit": "",
        "problem_statement": statement,
        "patch": patches["patch"],
        "test_patch": patches["test_patch"],
        "base_patch": patches["base_patch"],
        "FAIL_TO_PASS": list(broken.fail_to_pass),
        "PASS_TO_PASS": list(broken.pass_to_pass),
        "image": "",
        "eval_script": _eval_script(patches["test_patch"], tree, framework),
        "log_parser": framework.log_parser,
        "eval_type": PASS_AND_FAIL,
    }


def _patches(broken: Broken, tree: Path) -> dict[str, str]:
    """What breaks the tree, and in two parts what makes it whole again."""
    whole = {file: (tree / file).read_bytes() for file in broken.changed}
    tests = [file for file in broken.changed if file != broken.file]
    try:
        for file, text in broken.changed.items():
            (tree / file).write_bytes(text.encode("utf-8"))
        return {
            "base_patch": git(tree, *_DIFF),
            "patch": git(tree, *_DIFF, *_BACKWARDS, "--", broken.file),
            "test_patch": git(tree, *_DIFF, *_BACKWARDS, "--", *tests),
        }
    finally:
        for file, content in whole.items():
            (tree / file).write_bytes(content)


def _eval_script(test_patch: str, tree: Path, framework: Framework) -> str:
    variables = [f"{name}={value}" for name, value in framework.environment(tree).items()]
    command = " ".join([*variables, "python3", *framework.command])
    return (
        "#!/bin/bash\nset -uxo pipefail\ncd /testbed\n"
        f"git apply -v - <<'EOF_TEST_PATCH'\n{test_patch}EOF_TEST_PATCH\n"
        f": '{START}'\n{command}\n: '{END}'\n"
    )
