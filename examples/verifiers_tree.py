"""An evaluation with verifiers, whose every trace is a tree of messages with the credit of each.

    pip install "sandboxgym[verifiers,learners]"
    python examples/verifiers_tree.py

A model for two cores is served by the API that verifiers speaks; point `ModelContext` to your own.
This module is the plugin too: verifiers finds it by its name.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from typing import Any

import tiny
import torch
import verifiers.v1 as vf
from aiohttp import web

from sandboxgym.integrations.verifiers.plugin import SandboxTaskset, TreeHarness
from sandboxgym.integrations.verifiers.tasks import GROWN

__all__ = ["SandboxTaskset", "TreeHarness"]

PLUGIN = "verifiers_tree"
ARGUMENTS = {"source": "synthetic", "difficulty": "easy", "num_games": tiny.GAMES}


@contextlib.asynccontextmanager
async def serving_model() -> AsyncIterator[str]:
    """The tiny model behind `/v1/chat/completions`; the address."""
    model, tokenizer = tiny.cloned()
    told = tiny.dialogue(tokenizer)

    def generate(messages: list[dict[str, str]]) -> str:
        tokens: list[int] = []
        for message in messages:
            heard = message["role"] == "user"
            text = message["content"]
            tokens += told.answer(text, {}) if heard else tokenizer(text + tiny.END)["input_ids"]
        with torch.no_grad():
            out = model.generate(torch.tensor([tokens]), do_sample=True, top_k=0, max_new_tokens=16)
        return str(told.action(out[0, len(tokens) :].tolist()))

    async def complete(request: web.Request) -> web.Response:
        messages = (await request.json())["messages"]
        answer = {"role": "assistant", "content": await asyncio.to_thread(generate, messages)}
        choice = {"index": 0, "message": answer, "finish_reason": "stop"}
        return web.json_response(
            {"id": "0", "object": "chat.completion", "created": 0, "model": "tiny"}
            | {"choices": [choice]}
        )

    app = web.Application()
    app.router.add_post("/v1/chat/completions", complete)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


def describe(trace: vf.Trace) -> None:
    """Print the tree of a trace: what was said, and its credit."""
    credits_of = trace.info[GROWN]["credits"]
    children: dict[int | None, list[int]] = {}
    for index, node in enumerate(trace.nodes):
        children.setdefault(node.parent, []).append(index)

    def show(index: int, depth: int) -> None:
        node = trace.nodes[index]
        if node.sampled:
            print(f"{'  ' * depth}{node.message.content!r}: {credits_of[str(index)]:+.3f}")
        for child in children.get(index, []):
            show(child, depth + node.sampled)

    for root in children[None]:
        show(root, 1)


async def main(episodes: int = 2) -> list[vf.Trace]:
    """Evaluate some episodes; their traces."""
    os.environ.setdefault("TINY_KEY", "none")
    taskset: dict[str, Any] = {"id": PLUGIN, "arguments": ARGUMENTS, "episodes": episodes}
    harness = {"id": PLUGIN, "roots": 2, "branch_at": [1], "members": 2, "max_decisions": 5}
    env = vf.SingleAgentEnv(
        vf.SingleAgentEnvConfig(
            taskset={**taskset, "instructions": ""},
            agent={"harness": harness, "runtime": {"type": "subprocess"}},
        )
    )
    traces = []
    async with serving_model() as address, env.serving():
        client = vf.EvalClientConfig(base_url=address, api_key_var="TINY_KEY")
        context = vf.ModelContext(model="tiny", client=client)
        for task in env.taskset:
            (slot,) = env.slots(task)
            episode = await env.run_slot(slot, context)
            for error in [*episode.errors, *(e for t in episode.traces for e in t.errors)]:
                print(f"{task.data.name}: {error.message}")
            for trace in episode.traces:
                print(f"{task.data.name}: reward {trace.reward}, {trace.num_branches} branches")
                describe(trace)
                traces.append(trace)
    return traces


if __name__ == "__main__":
    asyncio.run(main())
