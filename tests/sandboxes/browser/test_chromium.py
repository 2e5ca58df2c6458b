"""Finding the browser, and that it ends when it should."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sandboxgym.sandboxes.browser import chromium, loop, profiles
from sandboxgym.sandboxes.browser.errors import BrowserLostError, BrowserNotFoundError
from tests.sandboxes.browser.helpers import Driver

PROGRAM = """
import os, sys
from sandboxgym.sandboxes.browser import chromium, loop
from tests.sandboxes.browser.helpers import Driver
page = Driver({"/": "<title>home"})
page.open()
browser = loop.run(chromium.shared())
print(browser.pid, browser._profile.folder, flush=True)
"""


def start(program: str) -> tuple[subprocess.Popen[str], int, Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM + program], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    pid, folder = process.stdout.readline().split()
    return process, int(pid), Path(folder)


def alive(group: int) -> bool:
    """Whether any process of a group is."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == group and fields[0] != "Z":
                return True
    return False


def wait_for_the_end(group: int) -> None:
    deadline = time.monotonic() + 30
    while alive(group) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(group)


def test_a_browser_that_is_named_has_to_exist(monkeypatch):
    monkeypatch.setenv("SANDBOXGYM_CHROMIUM", "/no/such/browser")
    with pytest.raises(BrowserNotFoundError, match="/no/such/browser, which is no program"):
        chromium.find()


def test_where_there_is_none_the_message_says_how_to_get_one(monkeypatch, tmp_path):
    monkeypatch.delenv("SANDBOXGYM_CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path))
    with pytest.raises(BrowserNotFoundError, match=r"apt-get install .*chromium-headless-shell"):
        chromium.find()


def test_playwrights_browser_is_found_too(monkeypatch, tmp_path):
    monkeypatch.delenv("SANDBOXGYM_CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path))
    program = tmp_path / "chromium_headless_shell-1200/chrome-linux/headless_shell"
    program.parent.mkdir(parents=True)
    program.write_text("")
    assert chromium.find() == program


def test_a_program_that_is_no_browser_is_named_with_its_last_words(monkeypatch, tmp_path):
    program = tmp_path / "broken"
    program.write_text("#!/bin/sh\necho 'cannot open libnss3.so' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("SANDBOXGYM_CHROMIUM", str(program))
    with pytest.raises(BrowserLostError, match=r"broken ended at once: cannot open libnss3\.so"):
        loop.run(chromium.Browser.launch(), 30)


def test_a_killed_owner_leaves_no_browser_behind(browser):
    process, pid, _ = start("import time; time.sleep(600)")
    assert alive(pid)
    process.kill()
    process.wait()
    wait_for_the_end(pid)


def test_an_owner_that_ends_leaves_nothing_behind(browser):
    process, pid, folder = start("")
    assert process.wait(60) == 0
    wait_for_the_end(pid)
    assert not folder.exists()


def test_a_fork_of_the_owner_keeps_no_browser_alive_and_can_have_its_own(browser):
    program = """
if os.fork() == 0:
    try:
        page.run("1")
    except Exception as error:
        print(type(error).__name__, flush=True)
    own = Driver({"/": "<title>own"})
    own.open()
    print(own.title, loop.run(chromium.shared()).pid, flush=True)
import time
time.sleep(600)
"""
    process, pid, _ = start(program)
    assert process.stdout is not None
    try:
        assert process.stdout.readline().strip() == "BrowserLostError"
        title, own = process.stdout.readline().split()
        assert title == "own"
        assert alive(pid)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        child = next(int(c) for c in children if int(c) != pid)
        process.kill()
        process.wait()
        wait_for_the_end(pid)
        assert alive(int(own))
        os.kill(child, signal.SIGKILL)
        wait_for_the_end(int(own))
    finally:
        process.kill()


def test_a_lost_browser_is_named_and_another_is_started(browser):
    page = Driver({"/": "<title>home"})
    page.open()
    os.killpg(loop.run(chromium.shared()).pid, signal.SIGKILL)
    with pytest.raises(BrowserLostError):
        page.wait(60_000)
    with pytest.raises(BrowserLostError, match="reset starts another"):
        page.run("1")
    page.close()
    page = Driver({"/": "<title>home"})
    page.open()
    assert page.title == "home"
    page.close()


def test_what_a_killed_owner_left_is_removed_by_the_next(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    held, left = profiles.make(), profiles.make()
    os.close(left.lock)  # as when its process is killed
    new = profiles.make()
    assert sorted(tmp_path.iterdir()) == sorted([held.folder, new.folder])
    held.remove()
    new.remove()
    assert list(tmp_path.iterdir()) == []


def test_blank_contexts_are_made_ahead_and_used_once(browser):
    async def take() -> set[str]:
        pool = (await chromium.shared()).pool
        return {(await pool.take()).context_id for _ in range(6)}

    assert len(loop.run(take(), 60)) == 6
