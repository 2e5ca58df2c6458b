from __future__ import annotations

import asyncio
import os
import threading

import pytest

from sandboxgym.sandboxes.browser import loop


async def thread_name() -> str:
    await asyncio.sleep(0)
    return threading.current_thread().name


def test_all_threads_share_one_loop():
    names: list[str] = []
    threads = [
        threading.Thread(target=lambda: names.append(loop.run(thread_name()))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(names) == {"sandboxgym-browser"}
    assert len(names) == 4


def test_what_a_coroutine_raises_is_raised_where_it_was_called():
    async def fail() -> None:
        raise LookupError("here")

    with pytest.raises(LookupError, match="here"):
        loop.run(fail())


def test_a_coroutine_that_takes_too_long_is_cancelled():
    cancelled = threading.Event()

    async def stay() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    with pytest.raises(TimeoutError, match=r"within 0\.05 s"):
        loop.run(stay(), 0.05)
    assert cancelled.wait(5)


def test_a_forked_child_has_a_loop_of_its_own():
    loop.run(thread_name())
    pid = os.fork()
    if pid == 0:
        try:
            ok = loop.run(thread_name(), 10) == "sandboxgym-browser"
        except BaseException:  # noqa: BLE001 - the child says so by its status
            ok = False
        os._exit(0 if ok else 1)
    _, status = os.waitpid(pid, 0)
    assert status == 0
