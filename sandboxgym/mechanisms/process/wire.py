"""Messages between the owner and its processes: plain data, and now and then a file descriptor.

A message is eight bytes of length (little-endian) and a `sandboxgym.core.codec` body.
"""

from __future__ import annotations

import array
import contextlib
import socket
import struct
import time
from dataclasses import dataclass
from typing import Any

from sandboxgym.core import codec

_LENGTH = struct.Struct("<Q")
_CHUNK = 1 << 18


@dataclass(frozen=True)
class Message:
    """A message as it arrived."""

    body: Any
    descriptor: int | None


class Connection:
    """One end of a stream socket."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end
        self._arrived = bytearray()

    @classmethod
    def pair(cls) -> tuple[Connection, Connection]:
        """Two connected ends."""
        left, right = socket.socketpair()
        return cls(left), cls(right)

    @classmethod
    def of(cls, descriptor: int) -> Connection:
        """The end that a descriptor stands for; no program that is started later inherits it."""
        end = socket.socket(fileno=descriptor)
        end.set_inheritable(False)
        return cls(end)

    def fileno(self) -> int:
        """The descriptor of this end."""
        return self.socket.fileno()

    def send(
        self, body: Any, *, descriptor: int | None = None, deadline: float | None = None
    ) -> None:
        """Send plain data, and a descriptor beside it.

        Args:
            body: Plain data.
            descriptor: A duplicate of it arrives at the other end.
            deadline: Point of `time.monotonic` by which all has to be sent.

        Raises:
            StateEncodingError: `body` is not plain data; nothing was sent.
            TimeoutError: The other end did not take it in time.
            ConnectionError: The other end is gone.
        """
        payload = codec.encode(body)
        data = memoryview(_LENGTH.pack(len(payload)) + payload)
        rights = [] if descriptor is None else [_rights(descriptor)]
        self._wait_until(deadline)
        sent = self.socket.sendmsg([data], rights, socket.MSG_NOSIGNAL)
        while sent < len(data):
            self._wait_until(deadline)
            sent += self.socket.send(data[sent:], socket.MSG_NOSIGNAL)

    def receive(self, *, deadline: float | None = None) -> Message:
        """Wait for the next message.

        Raises:
            EOFError: The other end was closed.
            TimeoutError: It did not come in time.
            ConnectionError: The other end is gone.
        """
        descriptor: int | None = None
        while (payload := self._take()) is None:
            self._wait_until(deadline)
            flags = socket.MSG_CMSG_CLOEXEC
            data, descriptors, _, _ = socket.recv_fds(self.socket, _CHUNK, 1, flags)
            if not data:
                raise EOFError("the other end of the connection was closed")
            self._arrived += data
            descriptor = descriptors[0] if descriptors else descriptor
        return Message(codec.decode(payload), descriptor)

    def _take(self) -> bytes | None:
        """The first message that has arrived whole."""
        if len(self._arrived) < _LENGTH.size:
            return None
        end = _LENGTH.size + _LENGTH.unpack_from(self._arrived)[0]
        if len(self._arrived) < end:
            return None
        payload = bytes(self._arrived[_LENGTH.size : end])
        del self._arrived[:end]
        return payload

    def close(self) -> None:
        """Close this end; the connection lives on where another process has a copy of it."""
        self.socket.close()

    def hang_up(self) -> None:
        """End the connection, whoever else has a copy of this end."""
        with contextlib.suppress(OSError):  # the other end is gone already
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    def _wait_until(self, deadline: float | None) -> None:
        if deadline is None:
            self.socket.settimeout(None)
        else:
            self.socket.settimeout(max(deadline - time.monotonic(), 1e-3))


def _rights(descriptor: int) -> tuple[int, int, array.array[int]]:
    return (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))
