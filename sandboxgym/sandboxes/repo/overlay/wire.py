"""Messages between the owner of a keeper and its processes: a JSON head, then raw bytes.

Both ends are our own processes, joined by a socket pair that nobody else has.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_LENGTHS = struct.Struct("!II")
_DESCRIPTOR = b"\0"


class ClosedError(ConnectionError):
    """The other end is gone."""


def send(connection: socket.socket, head: dict[str, Any], body: bytes = b"") -> None:
    """Send a message."""
    encoded = json.dumps(head).encode()
    try:
        connection.sendall(_LENGTHS.pack(len(encoded), len(body)) + encoded + body)
    except (BrokenPipeError, ConnectionResetError) as error:
        raise ClosedError("the other end of the connection is gone") from error


def receive(connection: socket.socket) -> tuple[dict[str, Any], bytes]:
    """Wait for a message.

    Raises:
        ClosedError: The other end is gone.
    """
    head_length, body_length = _LENGTHS.unpack(_exactly(connection, _LENGTHS.size))
    head: dict[str, Any] = json.loads(_exactly(connection, head_length))
    return head, _exactly(connection, body_length)


def send_socket(connection: socket.socket, other: socket.socket) -> None:
    """Hand over one end of another connection."""
    socket.send_fds(connection, [_DESCRIPTOR], [other.fileno()])


def receive_socket(connection: socket.socket) -> socket.socket:
    """Take over one end of another connection."""
    data, descriptors, _, _ = socket.recv_fds(connection, 1, 1)
    if not data or not descriptors:
        raise ClosedError("the other end of the connection is gone")
    return socket.socket(fileno=descriptors[0])


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let signals wait while a message is sent that must not stay unfinished."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def hang_up(connection: socket.socket, owner: int) -> None:
    """Close a connection at once, also where processes that were forked from its owner have it.

    In these, only their own end is closed.
    """
    if os.getpid() == owner:
        with contextlib.suppress(OSError):  # the other end is gone
            connection.shutdown(socket.SHUT_RDWR)
    connection.close()


def _exactly(connection: socket.socket, count: int) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        try:
            part = connection.recv(min(count - len(parts), 1 << 20))
        except ConnectionResetError:
            part = b""
        if not part:
            raise ClosedError("the other end of the connection is gone")
        parts += part
    return bytes(parts)
