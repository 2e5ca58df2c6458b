"""`sandboxgym play` as it is called from a shell."""

from __future__ import annotations

import importlib.util
import os
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

import sandboxgym as sg
from sandboxgym.cli import main
from sandboxgym.cli.play.timeline import Timeline
from tests.cli.play.worlds import Corridor

ROOT = Path(__file__).parents[3]


class Terminal:
    """A program in a pseudo-terminal."""

    def __init__(self, *arguments):
        import pty

        own, theirs = pty.openpty()
        self.descriptor = own
        self.seen = ""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "sandboxgym", "play", *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=ROOT,
            env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"},
            start_new_session=True,
        )
        os.close(theirs)

    def wait_for(self, text, seconds=60):
        until = time.monotonic() + seconds
        while text not in self.seen and time.monotonic() < until and self._read():
            pass
        assert text in self.seen, self.seen[-2000:]

    def press(self, keys):
        os.write(self.descriptor, keys)

    def end(self):
        try:
            until = time.monotonic() + 60
            while self.process.poll() is None and time.monotonic() < until:
                self._read()  # or it waits for room for what it writes
            return self.process.wait(timeout=5)
        finally:
            self.process.kill()
            os.close(self.descriptor)

    def _read(self):
        """Take what was written; whether there may be more."""
        ready, _, _ = select.select([self.descriptor], [], [], 0.2)
        try:
            if ready:
                self.seen += os.read(self.descriptor, 65536).decode(errors="replace")
        except OSError:  # it has closed its end
            return False
        return True


needs_a_pty = pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")


@needs_a_pty
def test_it_plays_in_a_terminal_and_is_left_with_control_q():
    terminal = Terminal("tests.cli.play.worlds:Corridor", "--seed", "3")
    terminal.wait_for("seed 3")
    terminal.press(b"right\r")
    terminal.wait_for("Raum 1")
    terminal.press(b"\x11")
    assert terminal.end() == 0


@needs_a_pty
def test_it_starts_from_a_file(tmp_path):
    timeline = Timeline(Corridor())
    timeline.step("right")
    timeline.step("right")
    timeline.save(tmp_path / "here.snap")
    terminal = Terminal("tests.cli.play.worlds:Corridor", "--load", str(tmp_path / "here.snap"))
    terminal.wait_for("Raum 2")
    terminal.press(b"\x11")
    assert terminal.end() == 0


@needs_a_pty
@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["tests.cli.worlds:nothing"], "returned None"),
        (["tests.cli.play.worlds:Corridor", "--kwargs", "trouble=reset"], "corridor is flooded"),
        (["tests.cli.play.worlds:Corridor", "--load", "/no/such.snap"], "No such file"),
        (["CartPole-v1", "--load", "{other}"], "the snapshot is of"),
        (["tests.cli.play.worlds:Corridor", "--load", "{broken}"], "not a snapshot"),
    ],
)
def test_what_cannot_be_played_is_said_in_a_line(arguments, reason, tmp_path):
    (tmp_path / "broken").write_bytes(b"x")
    Timeline(Corridor()).save(tmp_path / "other")
    names = {"broken": tmp_path / "broken", "other": tmp_path / "other"}
    terminal = Terminal(*(argument.format(**names) for argument in arguments))
    terminal.wait_for(reason)
    assert terminal.end() == 2
    assert terminal.seen.startswith("sandboxgym: error: ")
    assert "Traceback" not in terminal.seen


def test_it_needs_a_terminal(capsys):
    assert main(["play", "CartPole-v1"]) == 2
    assert "play needs a terminal" in capsys.readouterr().err


def test_it_needs_textual(capsys, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "textual" else found(name)
    )
    assert main(["play", "CartPole-v1"]) == 2
    assert capsys.readouterr().err == (
        'sandboxgym: error: play needs Textual: pip install "sandboxgym[play]"\n'
    )


def test_a_saved_moment_is_a_snapshot_like_any_other(tmp_path):
    timeline = Timeline(Corridor())
    timeline.step("right")
    timeline.save(tmp_path / "s.snap")
    env = Corridor()
    obs, _ = env.restore(sg.Snapshot.load(tmp_path / "s.snap"))
    assert "Raum 1" in obs
