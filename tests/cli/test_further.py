"""Commands that other packages bring, found by the metadata of what is installed."""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from sandboxgym.cli import further, main

ROOT = Path(__file__).parents[2]
HELLO = """
def add_command(commands):
    command = commands.add_parser("hello", help="say hello")
    command.add_argument("--to", default="you")
    command.set_defaults(run=lambda options: print("hello", options.to) or 0)
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Installs a package that names commands."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(entries: str, code: str = HELLO) -> None:
        metadata = tmp_path / "greetings-1.0.dist-info"
        metadata.mkdir(exist_ok=True)
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: greetings\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(f"[sandboxgym.commands]\n{entries}\n")
        (tmp_path / "greetings.py").write_text(code)
        importlib.invalidate_caches()

    yield write
    sys.modules.pop("greetings", None)


def test_a_command_of_another_package_is_called(install, capsys):
    install("hello = greetings:add_command")
    assert main(["hello", "--to", "all"]) == 0
    assert capsys.readouterr().out == "hello all\n"


def test_help_names_it(install, capsys):
    install("hello = greetings:add_command")
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "say hello" in capsys.readouterr().out


def test_a_package_that_cannot_be_imported_breaks_its_own_command_only(install, capsys):
    install("broken = no_such_module:add_command\nhello = greetings:add_command")
    assert main(["broken", "--any", "thing"]) == 2
    assert "the command broken of greetings cannot be loaded: No mod" in capsys.readouterr().err
    assert main(["hello"]) == 0


def test_a_command_of_ours_cannot_be_replaced(install, capsys):
    install("list = greetings:add_command")
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out
    assert "show the registered environments" in shown
    assert "say hello" not in shown


def test_no_other_package_is_imported_for_a_command_of_ours(install, capsys):
    install("hello = greetings:add_command", "print('imported')\n" + HELLO)
    main(["doctor", "--json"])
    assert "imported" not in capsys.readouterr().out
    main(["hello"])
    assert "imported" in capsys.readouterr().out


def test_where_the_learners_are_missing_their_command_says_how_to_get_them(monkeypatch, capsys):
    monkeypatch.setattr(further, "entry_points", lambda group: [])
    assert main(["view", "--open", "runs/a"]) == 2
    assert 'pip install "sandboxgym[learners]"' in capsys.readouterr().err


def test_the_project_declares_the_command_of_the_learners(capsys):
    declared = re.search(
        r'^\[project\.entry-points\."sandboxgym\.commands"\]\nview = "(.*)"$',
        (ROOT / "pyproject.toml").read_text("utf-8"),
        re.MULTILINE,
    )
    assert declared is not None
    parser = argparse.ArgumentParser()
    EntryPoint("view", declared[1], further.GROUP).load()(parser.add_subparsers())
    with pytest.raises(SystemExit):
        parser.parse_args(["view", "--help"])
    assert "RUN_DIR" in capsys.readouterr().out
