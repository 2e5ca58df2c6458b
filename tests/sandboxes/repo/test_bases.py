"""Bases: built once, without a trace of where they came from."""

from __future__ import annotations

import os
import subprocess

import pytest

from sandboxgym.core.errors import DataNotFoundError
from sandboxgym.sandboxes.repo.bases import (
    SANDBOX_USER,
    RepositoryError,
    base_of_commit,
    base_of_folder,
    default_cache,
)


def git(folder, *arguments: str) -> str:
    who = ["-c", "user.name=secret author", "-c", "user.email=secret@example.org"]
    command = ["git", *who, "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path):
    """Two commits, a tag, a remote, an ignored and an executable file."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    git(folder, "remote", "add", "origin", "https://example.org/secret.git")
    (folder / "code.py").write_text("x = 1\n")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("code.py")
    (folder / ".gitignore").write_text("ignored\nkept\n")
    (folder / "kept").write_text("tracked although ignored\n")
    git(folder, "add", "-f", "kept")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "secret first")
    git(folder, "tag", "v1")
    (folder / "code.py").write_text("x = 2  # the fix\n")
    git(folder, "commit", "-qam", "secret fix")
    (folder / "ignored").write_text("not in any commit\n")
    return folder


def test_a_commit_is_all_there_is(repository, base_cache):
    base = base_of_commit(repository, "v1", cache=base_cache)
    tree = base.root / "repo"
    safe = ["-c", "safe.directory=*"]
    assert (tree / "code.py").read_text() == "x = 1\n"
    assert sorted(path.name for path in tree.iterdir()) == [
        *(".git", ".gitignore", "code.py", "kept", "link", "run.sh"),
    ]
    assert os.access(tree / "run.sh", os.X_OK)
    assert git(tree, *safe, "status", "--porcelain") == ""
    assert git(tree, *safe, "log", "--all", "--format=%an %s") == "base base"
    assert git(tree, *safe, "tag") == git(tree, *safe, "remote") == ""
    told = subprocess.run(["grep", "-rl", "secret", base.root], capture_output=True, check=False)
    assert told.stdout == b""
    objects = git(tree, *safe, "cat-file", "--batch-all-objects", "--batch-check=%(objecttype)")
    assert objects.split().count("commit") == 1
    assert "fix" not in "".join(
        git(tree, *safe, "cat-file", "-p", line.split()[0])
        for line in git(tree, *safe, "cat-file", "--batch-all-objects", "--batch-check").split("\n")
        if " blob " in line
    )


def test_a_commit_has_one_base_and_one_name(repository, base_cache):
    first = base_of_commit(repository, "v1", cache=base_cache)
    sha = git(repository, "rev-parse", "v1")
    assert base_of_commit(repository, sha, cache=base_cache) == first
    assert base_of_commit(repository, "main", cache=base_cache).name != first.name


def test_a_name_says_what_is_in_a_tree_and_not_where_it_lies(tmp_path, base_cache):
    names = []
    for place, content in (("a", "1"), ("b", "1"), ("c", "2")):
        (tmp_path / place).mkdir()
        (tmp_path / place / "file").write_text(content)
        names.append(base_of_folder(tmp_path / place, cache=base_cache).name)
    assert names[0] == names[1] != names[2]


def test_a_folder_that_changed_gets_another_base(tmp_path, base_cache):
    (tmp_path / "file").write_text("1")
    first = base_of_folder(tmp_path, cache=base_cache)
    assert base_of_folder(tmp_path, cache=base_cache) == first
    (tmp_path / "file").write_text("22")
    second = base_of_folder(tmp_path, cache=base_cache)
    assert second.root != first.root
    assert (first.root / "repo" / "file").read_text() == "1"


def test_the_history_of_a_folder_is_left_out(repository, base_cache):
    base = base_of_folder(repository, cache=base_cache)
    tree = base.root / "repo"
    assert (tree / "ignored").exists()
    assert git(tree, "-c", "safe.directory=*", "log", "--all", "--format=%s") == "base"


def test_nested_repositories_become_plain_folders(repository, tmp_path, base_cache):
    outer = tmp_path / "outer"
    (outer / "submodule").mkdir(parents=True)
    (outer / "submodule" / ".git").write_text("gitdir: ../../secret\n")
    (outer / "submodule" / "file").write_text("1\n")
    repository.rename(outer / "nested")
    (outer / "nested").chmod(0o555)
    tree = base_of_folder(outer, cache=base_cache).root / "repo"
    tracked = git(tree, "-c", "safe.directory=*", "ls-files").split("\n")
    assert {"submodule/file", "nested/code.py"} <= set(tracked)
    told = subprocess.run(["grep", "-rl", "secret", tree], capture_output=True, check=False)
    assert told.stdout == b""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_tree_belongs_to_the_sandboxs_user(base):
    for parent, folders, files in os.walk(base.root):
        for name in (*folders, *files):
            assert os.lstat(os.path.join(parent, name)).st_uid == SANDBOX_USER  # noqa: PTH118


def test_nothing_half_built_is_left(tmp_path):
    with pytest.raises(DataNotFoundError, match="no folder"):
        base_of_folder(tmp_path / "none", cache=tmp_path / "cache")
    with pytest.raises(RepositoryError):
        base_of_commit(tmp_path, cache=tmp_path / "cache")
    assert not (tmp_path / "cache").exists() or list((tmp_path / "cache").iterdir()) == []


def test_a_commit_that_is_not_there_is_named(repository, base_cache):
    with pytest.raises(RepositoryError, match="no commit 'v2' in"):
        base_of_commit(repository, "v2", cache=base_cache)


def test_what_is_no_tree_is_named_with_a_way_out(tmp_path):
    git(tmp_path, "init", "-q", "empty")
    (tmp_path / "plain").mkdir()
    (tmp_path / "file").write_text("")
    for name in ("empty", "plain"):
        with pytest.raises(RepositoryError, match=f"no commit 'HEAD' in .*{name}: .*commit=None"):
            base_of_commit(tmp_path / name, cache=tmp_path / "cache")
    for name in ("missing", "file"):
        with pytest.raises(DataNotFoundError, match=f"{name} is no folder"):
            base_of_commit(tmp_path / name, cache=tmp_path / "cache")


def test_a_folder_nested_too_deep_is_refused_in_a_few_words(tmp_path):
    at = os.open(tmp_path, os.O_RDONLY)
    for _ in range(30):
        os.mkdir("d" * 200, dir_fd=at)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    with pytest.raises(DataNotFoundError, match=r"not all of .* can be read") as refused:
        base_of_folder(tmp_path, cache=tmp_path / "cache")
    assert len(str(refused.value)) < 500


def test_a_folder_that_may_only_be_read_is_copied(tmp_path, base_cache):
    (tmp_path / "read").mkdir()
    (tmp_path / "read" / "file").write_text("1")
    (tmp_path / "read").chmod(0o555)
    tree = base_of_folder(tmp_path / "read", cache=base_cache).root / "repo"
    assert tree.stat().st_mode & 0o777 == 0o555
    assert git(tree, "-c", "safe.directory=*", "ls-files") == "file"


def test_the_cache_is_where_the_user_wants_it(monkeypatch, tmp_path):
    monkeypatch.setenv("SANDBOXGYM_CACHE", str(tmp_path))
    assert default_cache() == tmp_path / "bases"
    monkeypatch.delenv("SANDBOXGYM_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    assert default_cache() == tmp_path / "user" / "sandboxgym" / "bases"
