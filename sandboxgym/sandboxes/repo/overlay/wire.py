"""Messages between the owner of a keeper and its processes.

To a warden: a JSON head, then raw bytes, of any length. To the keeper itself, which several threads
may ask, and the collector of garbage in the midst of that: a note, which is short and is sent in
one system call, so that nothing can come between its parts.

Both ends are our own processes, joined by a socket pair that nobody else has.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
from collections.abc import Sequence
from typing import Any

_LENGTHS = struct.Struct("!II")
_LONGEST_NOTE = 1 << 16


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


def note_pair() -> tuple[socket.socket, socket.socket]:
    """Both ends of a connection for notes."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send_note(
    connection: socket.socket, head: dict[str, Any], handed_over: Sequence[socket.socket] = ()
) -> None:
    """Send a note, and with it an end of another connection: all of it or, by an error, nothing.

    A lock, or signals that wait, would not do. Handlers of Python run in its main thread, whichever
    thread of the process the signal came to (those of numerical libraries block none), and the
    exception that one raises can end anything between two steps, the release of a lock included.
    """
    encoded = json.dumps(head).encode()
    assert len(encoded) <= _LONGEST_NOTE
    try:
        socket.send_fds(connection, [encoded], [other.fileno() for other in handed_over])
    except (BrokenPipeError, ConnectionResetError) as error:
        raise ClosedError("the other end of the connection is gone") from error


def receive_note(connection: socket.socket) -> tuple[dict[str, Any], list[socket.socket]]:
    """Wait for a note, and for what comes with it.

    Raises:
        ClosedError: The other end is gone.
    """
    try:
        encoded, descriptors, _, _ = socket.recv_fds(connection, _LONGEST_NOTE, 1)
    except ConnectionResetError:
        encoded, descriptors = b"", []
    if not encoded:
        raise ClosedError("the other end of the connection is gone")
    return json.loads(encoded), [socket.socket(fileno=one) for one in descriptors]


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
