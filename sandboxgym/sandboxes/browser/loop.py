"""The one thread of this process in which everything that speaks to the browser runs.

`run(coroutine)` may be called from any thread. A process that was forked off has no such thread any
more and gets its own at the first call.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")

_lock = threading.Lock()
_thread: LoopThread | None = None
_minding_forks = False


class LoopThread:
    """A daemon thread with an event loop in it."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._serve, name="sandboxgym-browser", daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()


def run(coroutine: Coroutine[Any, Any, Result], timeout: float | None = None) -> Result:
    """Run a coroutine in the browser's thread and wait for what it returns.

    Args:
        coroutine: What to run.
        timeout: After how many seconds it is cancelled.

    Raises:
        TimeoutError: It took longer.
    """
    future = asyncio.run_coroutine_threadsafe(coroutine, _current().loop)
    try:
        return future.result(timeout)
    except concurrent.futures.TimeoutError:
        if future.done():
            raise  # the coroutine's own
        future.cancel()
        raise TimeoutError(f"the browser did not answer within {timeout} s") from None
    except BaseException:
        future.cancel()
        raise


def _current() -> LoopThread:
    global _thread, _minding_forks
    with _lock:
        if not _minding_forks:
            _minding_forks = True
            os.register_at_fork(after_in_child=_forked)
        if _thread is None:
            _thread = LoopThread()
        return _thread


def _forked() -> None:
    """The thread stayed behind, and perhaps held the lock."""
    global _lock, _thread
    _lock, _thread = threading.Lock(), None
