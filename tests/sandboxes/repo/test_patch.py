"""What an agent changed is found whatever it did, and applies to the pristine tree."""

from __future__ import annotations

import pytest

from sandboxgym.sandboxes.repo import patch
from sandboxgym.sandboxes.repo.backend import Limits
from sandboxgym.sandboxes.repo.bases import base_of_folder
from sandboxgym.sandboxes.repo.capture import Pristine, capture
from sandboxgym.sandboxes.repo.patch import PatchError
from tests.sandboxes.repo.conftest import make_overlay_backend

SETUP_CFG = "[metadata]\nname = it\n\n[tool:pytest]\ntestpaths = tests\n\n[flake8]\nx = 1\n"
PYPROJECT = '[project]\nname = "it"\n\n[tool.pytest.ini_options]\naddopts = "-q"\n'
LOOK = (
    "cd /repo; find . -path ./.git -prune -o -printf '%P %y %l %m\\n' | sed 's/[0-7][0-7]$//' "
    "| LC_ALL=C sort; find . -path ./.git -prune -o -type f -print0 | LC_ALL=C sort -z "
    "| xargs -0 md5sum"
)


@pytest.fixture(scope="module")
def backend():
    with make_overlay_backend(Limits(seconds=60.0)) as backend:
        yield backend


@pytest.fixture(scope="module")
def pristine(backend, tmp_path_factory, base_cache):
    tree = tmp_path_factory.mktemp("patched")
    for name, text in {
        "a.py": "a = 1\n",
        "pkg/b.py": "b = 1\nb = 2\nb = 3\n",
        "pkg/c.txt": "c\n",
        "windows.txt": "one\r\ntwo\r\n",
        ".gitattributes": "*.txt text\n",
        ".gitignore": "*.log\n",
        "setup.cfg": SETUP_CFG,
        "pyproject.toml": PYPROJECT,
        "tests/test_a.py": "def test_a(): pass\n",
        "tests/conftest.py": "\n",
    }.items():
        (tree / name).parent.mkdir(exist_ok=True)
        (tree / name).write_bytes(text.encode())
    (tree / "data.bin").write_bytes(bytes(range(256)) * 8)
    with backend.create(base_of_folder(tree, cache=base_cache)) as sandbox:
        yield Pristine(backend, sandbox.snapshot())


@pytest.fixture
def captured(backend, pristine):
    """What is captured of a command's work, and what the tree looks like with it applied."""

    def run(command, protected=()):
        with backend.fork(pristine.moment) as agent:
            done = agent.run(command)
            assert done.returncode == 0, done.output
            moment = agent.snapshot()
            result = capture(pristine, moment, protected)
            after = agent.run(LOOK, output=10**6).output
        with backend.fork(pristine.moment) as grader:
            patch.apply(grader, result.text)
            applied = grader.run(LOOK, output=10**6).output
        return result, after, applied

    return run


def test_an_agent_that_did_nothing_leaves_an_empty_patch(captured):
    result, after, applied = captured("cat a.py; ls -R > /tmp/elsewhere; touch -d 2001-01-01 a.py")
    assert (result.text, result.files, result.left_out) == (b"", (), ())
    assert after == applied


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ("echo 'a = 2' > a.py", {"a.py"}),
        ("echo 'a = 2' > a.py; git add a.py", {"a.py"}),
        ("echo 'a = 2' > a.py; git commit -qam changed", {"a.py"}),
        ("echo 'a = 2' > a.py; git commit -qam x; git checkout -q --orphan y; "
         "git rm -rq --cached .; git commit -qm z --allow-empty", {"a.py"}),
        ("echo 'a = 2' > a.py; rm -rf .git", {"a.py"}),
        ("echo 'a = 2' > a.py; rm -rf .git; echo gitdir: /nowhere > .git", {"a.py"}),
        ("echo new > new.py", {"new.py"}),
        ("mkdir -p d/e; echo new > d/e/new.py; git add -N .", {"d/e/new.py"}),
        ("rm a.py; git rm -q pkg/c.txt", {"a.py", "pkg/c.txt"}),
        ("git mv a.py z.py", {"a.py", "z.py"}),
        ("mv pkg lib", {f"{d}/{n}" for d in ("pkg", "lib") for n in ("b.py", "c.txt")}),
        ("head -c 5000 /dev/urandom > data.bin; head -c 99 /dev/urandom > new.bin",
         {"data.bin", "new.bin"}),
        ("chmod +x a.py", {"a.py"}),
        ("ln -s pkg/b.py link; ln -s /etc/passwd out; rm a.py; ln -s pkg a.py",
         {"link", "out", "a.py"}),
        ("rm a.py; mkdir a.py; echo x > a.py/x", {"a.py", "a.py/x"}),
        ("printf x > $'new\\nline'; printf y > $'quo\"te'; printf z > $'\\xff\\xfe'; printf u > é",
         {"new\nline", 'quo"te', "\udcff\udcfe", "é"}),
        ("printf x > 'git~1'; printf x > 'back\\slash'; printf x > ' lead'; printf x > -dash",
         {"git~1", "back\\slash", " lead", "-dash"}),
        ("printf 'no newline' >> a.py; printf '\\r\\n' >> windows.txt", {"a.py", "windows.txt"}),
        ("printf 'b = 1\\n' > pkg/b.py; printf '\\0' >> pkg/c.txt", {"pkg/b.py", "pkg/c.txt"}),
    ],
)  # fmt: skip
def test_every_kind_of_change_is_captured_and_applies(captured, command, files):
    result, after, applied = captured(command)
    assert set(result.files) == files
    assert result.left_out == ()
    assert applied == after


@pytest.mark.parametrize(
    "attributes",
    [
        "* -diff",
        "* binary",
        "* text eol=crlf",
        "* text=auto",
        "* ident",
        "*.py working-tree-encoding=UTF-16",
        "* filter=evil diff=evil merge=evil",
        "* export-ignore export-subst",
        "[attr]binary text\n* binary",
    ],
)
def test_attributes_of_the_agent_change_nothing(captured, attributes):
    result, after, applied = captured(
        f"printf '%s\\n' {attributes!r} > .gitattributes; "
        "git config filter.evil.clean 'echo evil'; "
        "git config diff.evil.textconv 'echo evil'; printf 'x = \"$Id$\"\\r\\n' >> a.py"
    )
    assert set(result.files) == {".gitattributes", "a.py"}
    assert applied == after
    assert b"evil\n" not in result.text.replace(attributes.encode(), b"")


def test_what_git_ignores_is_left_out_and_nothing_else(captured):
    result, _, _ = captured(
        "echo x > a.log; echo '*.py' >> .gitignore; echo y > a.py; echo z > n.py"
    )
    assert set(result.files) == {".gitignore", "a.py"}
    result, _, _ = captured(
        "echo '*' > .git/info/exclude; git config core.excludesFile /repo/e; "
        "echo '*' > /repo/e; echo '*' > ~/.gitignore; echo n > n.py"
    )
    assert set(result.files) == {"e", "n.py"}


def test_flags_that_hide_changes_from_git_hide_nothing(captured):
    result, _, _ = captured(
        "git update-index --assume-unchanged a.py; git update-index --skip-worktree pkg/b.py; "
        "git config core.fileMode false; git config core.worktree /tmp; "
        "echo 2 > a.py; echo 2 > pkg/b.py; chmod +x pkg/c.txt"
    )
    assert set(result.files) == {"a.py", "pkg/b.py", "pkg/c.txt"}


def test_the_agents_git_runs_nothing(captured):
    result, _, _ = captured(
        "git config core.fsmonitor 'touch /repo/ran'; git config core.hooksPath /repo/hooks; "
        "mkdir hooks; printf '#!/bin/sh\\ntouch /repo/ran\\n' > hooks/post-index-change; "
        "chmod +x hooks/*; echo 'git() { echo fooled; }' > ~/.bashrc; git() { echo fooled; }; "
        "export GIT_DIR=/nowhere PATH=/nowhere; echo n > n.py"
    )
    assert set(result.files) == {"hooks/post-index-change", "n.py"}


def test_nested_repositories_are_plain_folders(captured):
    result, _, _ = captured(
        "git init -q sub; echo s > sub/s.py; git -C sub add .; git -C sub commit -qm s; "
        "mkdir wt; echo 'gitdir: ../sub/.git' > wt/.git; echo w > wt/w.py; mkdir -p C/.GIT; "
        "echo c > C/c.py; echo x > C/.GIT/x"
    )
    assert set(result.files) == {"sub/s.py", "wt/w.py", "C/c.py"}


def test_what_is_no_file_or_cannot_be_read_is_survived(captured):
    result, _, _ = captured(
        "mkfifo pipe; rm a.py; mkfifo a.py; chmod 000 pkg/b.py; mkdir shut; echo s > shut/s; "
        "chmod 000 shut; python3 -c 'import socket; socket.socket(1).bind(\"sock\")'"
    )
    assert set(result.files) == {"a.py", "shut/s"}


@pytest.mark.parametrize(
    "command",
    [
        "cd /; mv repo elsewhere; ln -s elsewhere repo",
        "cd /; mv repo elsewhere",
        "cd /; mv repo elsewhere; ln -s /usr repo",
    ],
)
def test_a_tree_that_is_gone_is_no_patch(captured, command):
    with pytest.raises(PatchError, match="no folder /repo"):
        captured(command)


def test_a_patch_that_is_too_large_is_refused(captured):
    with pytest.raises(PatchError, match="too large"):
        captured("head -c 70000000 /dev/urandom > huge")


@pytest.mark.parametrize(
    "name",
    [
        "tests/conftest.py", "conftest.py", "pytest.ini", "tox.ini", "pkg/CONFTEST.PY", "x.pth",
        "p/__pycache__/a.cpython-311.pyc", "a.pyc", "sitecustomize.py",
        "usercustomize/__init__.py", "evil.egg-info/entry_points.txt", "conftest.py/inside.py",
        "tests/test_a.py", "tests/test_new.py",
    ],
)  # fmt: skip
def test_protected_files_are_left_out_and_the_rest_is_not(captured, name):
    command = f"rm -f conftest.py; mkdir -p $(dirname {name}); echo 1 > {name}; echo 2 > a.py"
    result, _, applied = captured(command, protected=["tests/test_*.py"])
    assert result.files == ("a.py",)
    assert result.left_out == (name,)
    assert "inside" not in applied


def test_protected_files_cannot_be_deleted_or_moved_away(captured):
    result, _, _ = captured("git mv tests other; rm -f other/conftest.py", protected=["tests"])
    assert result.files == ("other/test_a.py",)
    assert set(result.left_out) == {"tests/conftest.py", "tests/test_a.py"}


def test_what_setup_cfg_says_to_pytest_stays_and_the_rest_changes(captured, backend, pristine):
    result, _, _ = captured(
        "sed -i 's/name = it/name = that/; s/testpaths = tests/addopts = -p evil/' setup.cfg"
    )
    assert result.files == ("setup.cfg",)
    assert b"+name = that" in result.text
    assert b"evil" not in result.text
    assert b"testpaths = tests" not in result.text.replace(b" testpaths = tests", b"")


@pytest.mark.parametrize(
    "edit",
    [
        "sed -i 's/-q/-p evil/' pyproject.toml",
        "printf '[tool.pytest]\\nini_options.addopts = \"-p evil\"\\n' > pyproject.toml",
        'printf \'["tool"."pyt\\\\u0065st".ini_options]\\naddopts = "evil"\\n\' > pyproject.toml',
        "rm pyproject.toml",
        "ln -sf setup.cfg pyproject.toml",
        "printf 'broken [' > pyproject.toml",
        "mkdir n; printf '[tool.pytest.ini_options]\\naddopts=\"-p evil\"\\n' > n/pyproject.toml",
        "mkdir n; printf '[pytest]\\naddopts=-p evil\\n[tool:pytest]\\naddopts=evil' > n/setup.cfg",
    ],
)
def test_no_spelling_tells_pytest_anything_else(captured, backend, pristine, edit):
    result, _, _ = captured(edit)
    assert b"evil" not in result.text
    with backend.fork(pristine.moment) as grader:
        patch.apply(grader, result.text)
        told = grader.run("sed -n '/tool.pytest/,/^$/p' pyproject.toml; ls n/pyproject.toml").output
    assert told.startswith('[tool.pytest.ini_options]\naddopts = "-q"\n')


def test_a_solution_may_change_what_is_not_pytests(captured):
    result, after, applied = captured("echo '[tool.black]\nline-length = 9' >> pyproject.toml")
    assert result.files == ("pyproject.toml",)
    assert applied == after


def test_looking_leaves_the_agents_moment_as_it_was(backend, pristine):
    with backend.fork(pristine.moment) as agent:
        agent.run("git init -q sub; mkfifo pipe; chmod 000 a.py; echo n > n; git add n")
        look = "find . -printf '%P %y %m %T@\\n' | LC_ALL=C sort; git status --short"
        moment = agent.snapshot()
        before = agent.run(look, output=10**6).output
        capture(pristine, moment)
        agent.restore(moment)
        assert agent.run(look, output=10**6).output == before


def test_a_patch_that_does_not_fit_is_named(backend, pristine):
    with backend.fork(pristine.moment) as sandbox, pytest.raises(PatchError, match=r"a\.py"):
        patch.apply(sandbox, b"--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-other\n+new\n")
