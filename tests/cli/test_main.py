"""What all commands share: how they are called, and how they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import pytest

import sandboxgym as sg
from sandboxgym.cli import main

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "sandboxgym"]


def run(*arguments, **kwargs):
    kwargs = {"capture_output": True, "text": True, "cwd": ROOT, "timeout": 120, **kwargs}
    return subprocess.run([*COMMAND, *arguments], **kwargs)


@pytest.mark.parametrize("module", ["sandboxgym", "sandboxgym.cli"])
def test_it_runs_as_a_module(module):
    done = subprocess.run(
        [sys.executable, "-m", module, "--version"], capture_output=True, text=True, cwd=ROOT
    )
    assert (done.returncode, done.stdout) == (0, f"sandboxgym {sg.__version__}\n")


def test_the_command_is_as_fast_as_its_imports_are_light():
    program = (
        "import sys, sandboxgym.cli\n"
        "print([m for m in ('textual', 'rich', 'torch', 'docker') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_script_finds_modules_of_the_working_folder(tmp_path):
    (tmp_path / "my_ferry.py").write_text("from tests.mutants.correct import Ferry\n")
    script = tmp_path / "bin" / "sandboxgym"
    script.parent.mkdir()
    script.write_text("import sys\nfrom sandboxgym.cli import main\nsys.exit(main())\n")
    done = subprocess.run(
        [sys.executable, script, "check", "my_ferry:Ferry", "--only", "00", "09", "--seeds", "1"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "pass  09-restore-in-another-process" in done.stdout


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["bench"], ["play"], ["doctor", "--need"]])
def test_wrong_usage_gives_two(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert "usage: sandboxgym" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["NoSuch-v0"], "--import MODULE"),
        (["CartPole"], "neither a registered Gymnasium id"),
        ([""], "neither a registered Gymnasium id"),
        ([":"], "neither a registered Gymnasium id"),
        (["no.such.module:Some-v0"], "needs the module 'no.such.module', which cannot be imported"),
        (["tests.nowhere:make"], "No module named 'tests.nowhere'"),
        (["tests.cli.worlds:nothing"], "returned None, which is no gymnasium.Env"),
        (["tests.cli.worlds:a_text"], "an object of type str"),
        (["tests.cli.worlds:Flooded"], "the house is flooded"),
        (["tests.mutants.correct:Ferry", "--kwargs", "sails=2"], "unexpected keyword"),
        (["CartPole-v1", "--import", "no.such.module"], "--import no.such.module failed"),
    ],
)
def test_an_environment_that_cannot_be_used_gives_two_and_one_line(arguments, reason, capsys):
    assert main(["bench", *arguments]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("sandboxgym: error: ")
    assert reason in lines[0]


@pytest.mark.parametrize(
    "arguments",
    [["Registered-v3", "--import", "tests.cli.worlds"], ["tests.cli.worlds:Registered-v3"]],
)
def test_an_id_that_a_module_registers_is_found(arguments, capsys):
    gym.registry.pop("Registered-v3", None)
    sys.modules.pop("tests.cli.worlds", None)
    assert main(["bench", *arguments, "--depths", "1", "--seconds", "0.01"]) == 0
    assert "Registered-v3 forks by" in capsys.readouterr().out


def test_a_reader_that_goes_away_ends_it_without_a_trace():
    reading, writing = os.pipe()
    os.close(reading)
    done = run("list", stdout=writing, stderr=subprocess.PIPE, capture_output=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


def test_an_interrupt_ends_it_without_a_trace():
    process = subprocess.Popen(
        [*COMMAND, "bench", "CartPole-v1", "--seconds", "60"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # nohup ignores it
    )
    assert process.stdout is not None
    assert "forks by" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "sandboxgym: interrupted\n")


def test_a_terminal_without_the_letters_gets_others():
    done = run(
        *("bench", "tests.mutants.correct:Ferry", "--depths", "1", "--seconds", "0.01"),
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert done.returncode == 0
    assert "\\xb5s" in done.stdout
