"""Growing a tree from a coroutine, with its environments in one thread of their own.

So a slow sandbox holds up nobody else's coroutines, and one that must not change threads does not.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sandboxgym.core.forking import AnyEnv
from sandboxgym.integrations.growth import Dialogue, Plan, Row, Said, TokenTree


async def grow_apart(
    make: Callable[[], AnyEnv],
    reset: dict[str, Any],
    dialogue: Dialogue,
    plan: Plan,
    generate: Callable[[Sequence[list[int]]], Awaitable[list[Said]]],
) -> list[Row]:
    """Make an environment, reset it, grow a tree from there, and close it.

    Args:
        make: Makes the environment.
        reset: The keywords of `env.reset`.
        dialogue: How its episodes become tokens.
        plan: Where the tree branches.
        generate: What the model says after each of some prompts.
    """
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1) as thread:
        apart = functools.partial(loop.run_in_executor, thread)
        env = await apart(make)
        try:
            await apart(functools.partial(env.reset, **reset))
            tree = await apart(TokenTree, env, dialogue, plan)
            try:
                while waiting := tree.waiting():
                    answers = await generate(waiting)
                    await apart(tree.advance, answers)
                return tree.rows()
            finally:
                await apart(tree.close)
        finally:
            await apart(env.close)
