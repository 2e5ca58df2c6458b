"""Keeping interrupts away while the books of a pool are being changed."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

_INTERRUPTS = {signal.SIGINT, signal.SIGTERM, signal.SIGALRM}


@contextmanager
def undisturbed() -> Iterator[None]:
    """Hold signals back whose handlers may raise: they come when the block is done.

    An order that was taken from one list and not yet put into the other would be lost, and its lane
    with it.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPTS)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
