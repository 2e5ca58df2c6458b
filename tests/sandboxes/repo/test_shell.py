"""The state of a shell, carried from one real bash to the next."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass

import pytest

from sandboxgym.sandboxes.repo import shell

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")


@dataclass
class Ran:
    output: str
    status: int


class Chain:
    """Shells one after the other, each going on from what the one before left."""

    def __init__(self, folder) -> None:
        self.folder = folder
        self.state = b""
        self.kept = True

    def __call__(self, command: str) -> Ran:
        left = memory(b"")
        inputs = [memory(command.encode()), memory(shell.prologue(self.state))]

        def place_descriptors() -> None:
            places = (shell.COMMAND_IN, shell.STATE_IN, shell.STATE_OUT)
            for place, descriptor in zip(places, [*inputs, left], strict=True):
                os.dup2(descriptor, place)

        process = subprocess.Popen(
            ["bash", "--norc", "--noprofile", "-c", shell.LAUNCH],
            cwd=self.folder,
            env={"PATH": os.environ["PATH"], "HOME": str(self.folder)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            preexec_fn=place_descriptors,
            close_fds=False,
        )
        output, _ = process.communicate(timeout=30)
        state = shell.state_left(os.pread(left, os.fstat(left).st_size, 0))
        for descriptor in (*inputs, left):
            os.close(descriptor)
        self.kept = state is not None
        self.state = self.state if state is None else state
        return Ran(output.decode("utf-8", "replace"), process.returncode)


def memory(content: bytes) -> int:
    descriptor = os.memfd_create("input")
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


@pytest.fixture
def run(tmp_path):
    return Chain(tmp_path)


@pytest.mark.parametrize(
    ("before", "asked", "answer"),
    [
        ("x=5", "echo $x", "5"),
        ("x='a  b'$'\\n'c", 'echo "$x"', "a  b\nc"),
        ("export x=7", "printenv x", "7"),
        ("x=7", "printenv x || echo not exported", "not exported"),
        ("x=1; unset x", 'echo "[${x-unset}]"', "[unset]"),
        ("a=(1 '2 3' '')", 'echo "${#a[@]} ${a[1]}"', "3 2 3"),
        ("declare -A m=([k]='v w')", 'echo "${m[k]}"', "v w"),
        ("declare -i n=4", "n=n+1; echo $n", "5"),
        ("readonly r=3", "r=4; echo no", "bash: line 1: r: readonly variable"),
        ("f() { echo \"got $1\"; }", "f 'a b'", "got a b"),
        ("alias hi='echo hello'", "hi you", "hello you"),
        ("shopt -u expand_aliases", "shopt expand_aliases | tr -d '\\t '", "expand_aliasesoff"),
        ("declare() { echo mine; }; x=5", "echo $x", "5"),
        ("shopt -s nocasematch; seconds=5", "echo $seconds", "5"),
        ("umask 027", "umask", "0027"),
        ("set -e; trap 'echo failed' ERR", "echo on", "on"),
        ("set -o pipefail", "false | true; echo $?", "1"),
        ("shopt -s extglob", "shopt extglob | tr -d '\\t '", "extglobon"),
        ("mkdir -p d/e; cd d/e", "basename $PWD", "e"),
        ("mkdir 'd é'$'\\n'x; cd d*", "basename \"$PWD\"", "d é\nx"),
        ("IFS=,; x=5", "echo $x; echo \"$IFS\"", "5\n,"),
        ("trap 'echo bye' EXIT", "trap -p EXIT", "trap -- 'echo bye' EXIT"),
        ("PS1='> '; export FOO='$(touch evil)'", 'echo "$FOO"; ls', "$(touch evil)"),
        ("export BIG=$(head -c 100000 /dev/zero | tr '\\0' x)", "echo ${#BIG}", "100000"),
    ],
)  # fmt: skip
def test_what_a_command_leaves_is_there_for_the_next(run, before, asked, answer):
    assert run(before).output == ""
    assert run(asked).output.rstrip("\n") == answer


def test_a_function_keeps_its_words_whatever_aliases_there_are(run):
    run("f() { echo x; }")
    run("alias echo='echo A'")
    assert [run("f").output for _ in range(3)] == ["x\n"] * 3
    run("g() { echo y; }")
    assert [run("g").output for _ in range(3)] == ["A y\n"] * 3


def test_a_function_with_extended_patterns_stays_when_they_are_switched_off(run):
    run("shopt -s extglob")
    run("f() { case $1 in (+(a)) echo yes ;; (*) echo no ;; esac; }")
    run("shopt -u extglob")
    assert run("shopt -q extglob || echo off; shopt -s extglob; f aa").output == "off\nyes\n"


@pytest.mark.parametrize("name", ["for", "case", "builtin", "shopt", "declare", "trap"])
def test_no_alias_reaches_what_carries_the_state(run, name):
    run(f"alias {name}='echo hijacked'; x=1")
    run("set -x")
    run("x=2; { set +x; } 2>&-")
    assert run("echo $x").output == "2\n"


def test_a_virtual_environment_stays_activated(run):
    (run.folder / "activate").write_text(
        "export VIRTUAL_ENV=/v PATH=/v/bin:$PATH\ndeactivate() { :; }"
    )
    run("source ./activate")
    assert (
        run("echo $VIRTUAL_ENV ${PATH%%:*}; type -t deactivate").output == "/v /v/bin\nfunction\n"
    )


@pytest.mark.parametrize(
    "command", ["exit 7", "set -e; false", "set -u; echo $nothing", "x=2; exit 1"]
)
def test_a_command_that_ends_the_shell_leaves_its_state(run, command):
    run("x=1; cd /usr")
    done = run(command)
    assert run.kept
    assert done.status != 0
    assert run("pwd").output == "/usr\n"


@pytest.mark.parametrize("command", ["exec true", "kill -9 $$", "set -n"])
def test_a_shell_that_leaves_nothing_leaves_what_was_before(run, command):
    run("x=1")
    run(command)
    assert not run.kept
    assert run("echo $x").output == "1\n"


def test_options_that_hinder_a_script_do_not_lose_the_state(run):
    run("x=1; set -euxvf; set -o noclobber posix; shopt -s failglob")
    assert run("echo $x >&2; echo $-").output.endswith("\n")
    assert run.kept
    assert "1" in run("echo $x").output


def test_a_traced_shell_traces_commands_and_nothing_of_ours(run):
    run("set -x")
    assert run("echo hi").output in ("++ echo hi\nhi\n", "hi\n++ echo hi\n")


def test_a_working_directory_that_is_gone_is_named(run):
    run("mkdir d; cd d; rmdir $PWD")
    assert f"{run.folder}/d: this working directory is gone" in run("true").output


def test_random_numbers_go_on_from_the_state(run):
    run("true")
    state = run.state
    first = run("echo $RANDOM $RANDOM").output
    run.state = state
    assert run("echo $RANDOM $RANDOM").output == first


def test_errors_count_lines_from_the_start_of_the_command(run):
    run("x=1")
    assert run("true\nnosuchcommand").output == "bash: line 2: nosuchcommand: command not found\n"


def test_a_command_may_be_long_and_have_a_here_document(run):
    text = "y" * 300_000
    assert run(f"wc -c <<'END'\n{text}\nEND").output.strip() == "300001"


def test_nothing_of_ours_is_in_the_environment(run):
    run("x=1")
    names = [line.partition("=")[0] for line in run("env").output.splitlines()]
    assert set(names) <= {"PATH", "HOME", "PWD", "OLDPWD", "SHLVL", "_"}


def test_a_command_cannot_end_the_state_early(run):
    run("x='\n#complete\n'; y=2")
    assert run('echo "$y"').output == "2\n"


def test_a_state_that_was_cut_or_is_huge_is_none():
    assert shell.state_left(b"x=1\n") is None
    assert shell.state_left(b"x" * shell.MAX_STATE_BYTES + shell.COMPLETE) is None
    assert shell.state_left(b"x=1\n" + shell.COMPLETE) == b"x=1\n" + shell.COMPLETE
