"""Messages as bytes over a socket: eight bytes of length (little-endian), then the message."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections import deque

_LENGTH = struct.Struct("<Q")
_CHUNK = 1 << 18


class Frames:
    """One end of a connection; both sides use it, the owner of a pool without ever blocking.

    Where both sides wrote more than the kernel keeps and waited until the other one reads, neither
    ever would. So the owner queues what cannot be sent yet, and sends it as there is room.
    """

    def __init__(self, end: socket.socket) -> None:
        self.socket = end
        self._arrived = bytearray()
        self._waiting: deque[memoryview] = deque()

    @classmethod
    def of(cls, descriptor: int) -> Frames:
        """The end that a descriptor stands for."""
        return cls(socket.socket(fileno=descriptor))

    def fileno(self) -> int:
        """The descriptor."""
        return self.socket.fileno()

    def receive(self) -> bytes:
        """Wait for the next message.

        Raises:
            EOFError: The other end is gone.
        """
        while (message := self._whole()) is None:
            self._read(0)
        return message

    def arrived(self) -> list[bytes]:
        """The messages that are here already.

        Raises:
            EOFError: The other end is gone.
        """
        with contextlib.suppress(BlockingIOError):
            self._read(socket.MSG_DONTWAIT)
        messages = []
        while (message := self._whole()) is not None:
            messages.append(message)
        return messages

    def send(self, message: bytes) -> None:
        """Send a message, however long it takes."""
        self.socket.sendall(_LENGTH.pack(len(message)) + message, socket.MSG_NOSIGNAL)

    def post(self, message: bytes) -> None:
        """Send a message as far as there is room; `flush` sends the rest."""
        self._waiting.append(memoryview(_LENGTH.pack(len(message)) + message))
        self.flush()

    @property
    def stuck(self) -> bool:
        """Whether something waits to be sent."""
        return bool(self._waiting)

    def flush(self) -> None:
        """Send more of what was posted."""
        while self._waiting:
            head = self._waiting[0]
            try:
                sent = self.socket.send(head, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
            except BlockingIOError:
                return
            if sent < len(head):
                self._waiting[0] = head[sent:]
            else:
                self._waiting.popleft()

    def forget(self) -> None:
        """Do without what could not be sent."""
        self._waiting.clear()

    def forsake(self) -> None:
        """Close this end; the connection lives on where another process has a copy of it."""
        self.socket.close()

    def close(self) -> None:
        """End the connection, whoever else has a copy of this end."""
        with contextlib.suppress(OSError):  # the other end is gone already
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    def _read(self, flags: int) -> None:
        try:
            data = self.socket.recv(_CHUNK, flags)
        except ConnectionError as error:
            raise EOFError("the connection broke off") from error
        if not data:
            raise EOFError("the other end of the connection was closed")
        self._arrived += data

    def _whole(self) -> bytes | None:
        if len(self._arrived) < _LENGTH.size:
            return None
        end = _LENGTH.size + _LENGTH.unpack_from(self._arrived)[0]
        if len(self._arrived) < end:
            return None
        message = bytes(memoryview(self._arrived)[_LENGTH.size : end])
        del self._arrived[:end]
        return message
