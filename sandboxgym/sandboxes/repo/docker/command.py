"""Running one command in a container, by one exec of the daemon.

The exec's input carries what the shell reads first, then the command, then the command's own input,
each of a length that the shell is told. Its two output streams are the command's output (standard
output and errors in order) and the state that the shell leaves. Nothing is written in the container
and nothing but these streams is believed: whoever forges the second forges their own shell's state.
"""

from __future__ import annotations

import select
import shlex
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sandboxgym.sandboxes.repo import shell
from sandboxgym.sandboxes.repo.overlay.command import Ends, State

USER = "1000:1000"
_HEAD = "/usr/bin/head -c"
_RECEIVED_AT_A_TIME = 1 << 16
_SECONDS_BETWEEN_LOOKS = 0.1
_SECONDS_OF_SILENCE = 0.1
_FRAME_HEADER = 8
_PRINTED, _LEFT = 1, 2
_ENDED = select.POLLHUP | select.POLLERR


@dataclass(frozen=True)
class Call:
    """A command, and what its shell starts from; as `overlay.command.Call`.

    Attributes:
        command: The text for the shell.
        stdin: What it finds on its standard input.
        state: What the shell of the command before left.
        environment: Environment variables of a new shell, all of them.
        workdir: Where a new shell stands.
        seconds: After which it counts as hung.
        output: Bytes of output that are kept, half from its start and half from its end.
        memory: Bytes of address space of each process.
    """

    command: bytes
    stdin: bytes
    state: bytes
    environment: Mapping[str, str]
    workdir: str
    seconds: float
    output: int
    memory: int


@dataclass(frozen=True)
class Output:
    """What became of a command.

    Attributes:
        printed: Its output, without its middle where that was too long.
        elided: How many bytes were left out.
        returncode: As a shell gives it; None where its time was up and it still runs.
        state: What its shell left, if it got that far.
    """

    printed: bytes
    elided: int
    returncode: int | None
    state: bytes | None


def run_command(api: Any, container: str, call: Call) -> Output:
    """Run a command in a running container."""
    arguments, sent = _launch(call)
    made = api.exec_create(container, arguments, stdin=True, user=USER, workdir="/")["Id"]
    output, left = Ends(call.output // 2), State()
    frames = Frames({_PRINTED: output.add, _LEFT: left.add})
    stream = api.exec_start(made, socket=True)
    try:
        following = Following(api, made, getattr(stream, "_sock", stream), frames)
        returncode = following.follow(sent, time.monotonic() + call.seconds)
    finally:
        stream.close()
    kept, elided = output.kept()
    return Output(kept, elided, returncode, shell.state_left(bytes(left.data)))


def _launch(call: Call) -> tuple[list[str], bytes]:
    """The program of the exec, and all that is written to its input."""
    own_input = f"< <({_HEAD} {len(call.stdin)})" if call.stdin else "</dev/null"
    prologue = b"".join(
        (
            f"exec {shell.COMMAND_IN}< <({_HEAD} {len(call.command)})\n".encode(),
            shell.prologue(call.state),
            f"exec 0{own_input}\n".encode(),
        )
    )
    script = (
        f"exec {shell.STATE_OUT}>&2 2>&1; ulimit -v {call.memory // 1024}; umask 022; "
        f"cd -- {shlex.quote(call.workdir)} 2>/dev/null; unset OLDPWD; "
        f"exec {shell.STATE_IN}< <({_HEAD} {len(prologue)}); {shell.LAUNCH}"
    )
    variables = [f"{name}={value}" for name, value in call.environment.items()]
    program = ["/usr/bin/env", "-i", *variables, "/bin/bash", "--norc", "--noprofile", "-c", script]
    return program, prologue + call.command + call.stdin


class Frames:
    """Takes apart what the daemon sends: pieces of several streams, each with a header.

    Args:
        sinks: What to do with the pieces of each stream, by its number.
    """

    def __init__(self, sinks: Mapping[int, Callable[[bytes], None]]) -> None:
        self.sinks = sinks
        self._header = bytearray()
        self._missing = 0

    def add(self, data: bytes) -> None:
        """Take in more of what the daemon sends."""
        while data:
            if self._missing:
                piece, data = data[: self._missing], data[self._missing :]
                self._missing -= len(piece)
                self.sinks[self._header[0]](piece)
            else:
                missing = _FRAME_HEADER - len(self._header) % _FRAME_HEADER
                if len(self._header) == _FRAME_HEADER:
                    self._header.clear()
                self._header += data[:missing]
                data = data[missing:]
                if len(self._header) == _FRAME_HEADER:
                    self._missing = int.from_bytes(self._header[4:], "big")


@dataclass
class Following:
    """Follows an exec until its shell has ended.

    Not until the end of the stream: what the shell left running may keep it open, and go on
    printing.
    """

    api: Any
    exec_name: str
    stream: socket.socket
    frames: Frames
    ended: bool = False

    def follow(self, sent: bytes, deadline: float) -> int | None:
        """The shell's status, or None when the deadline is there first."""
        self.stream.setblocking(False)
        look = time.monotonic() + _SECONDS_BETWEEN_LOOKS
        while True:
            now = time.monotonic()
            if now >= deadline:
                return None
            if self.ended or now >= look:
                status = self.status()
                if status is not None:
                    self.read_rest()
                    return status
                if self.ended:
                    time.sleep(_SECONDS_BETWEEN_LOOKS / 10)
                    continue
                look = time.monotonic() + _SECONDS_BETWEEN_LOOKS
            sent = self.exchange(sent, max(0.0, min(deadline, look) - now))

    def status(self) -> int | None:
        """The status of the shell, or None while it runs."""
        state = self.api.exec_inspect(self.exec_name)
        return None if state["Running"] or state["ExitCode"] is None else int(state["ExitCode"])

    def exchange(self, sent: bytes, seconds: float) -> bytes:
        """Read what is there and write what fits; returns what remains to be written."""
        ready = self.wait(select.POLLIN | (select.POLLOUT if sent else 0), seconds)
        if sent and ready & (select.POLLOUT | _ENDED):
            try:
                sent = sent[self.stream.send(sent[:_RECEIVED_AT_A_TIME]) :]
            except (BrokenPipeError, ConnectionResetError):
                sent = b""  # the shell has ended; what it printed can still be read
        if ready & (select.POLLIN | _ENDED):
            try:
                data = self.stream.recv(_RECEIVED_AT_A_TIME)
            except ConnectionResetError:
                data = b""
            self.frames.add(data)
            self.ended = not data
        return sent

    def read_rest(self) -> None:
        """Read what is on its way when the shell has ended, not what others go on to print."""
        deadline = time.monotonic() + 10 * _SECONDS_OF_SILENCE
        while not self.ended and time.monotonic() < deadline:
            if not self.wait(select.POLLIN, _SECONDS_OF_SILENCE):
                return
            self.exchange(b"", 0.0)

    def wait(self, events: int, seconds: float) -> int:
        """Which of these events has come when the time is up; poll has no highest descriptor."""
        poll = select.poll()
        poll.register(self.stream, events)
        return sum(event for _, event in poll.poll(1000 * seconds))
