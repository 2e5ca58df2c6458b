"""A harness of verifiers whose rollout is a tree; its branches are those of the message graph.

The tree grows in this process, with every model call through verifiers' interception. Calls with a
common beginning share its nodes there, so that the graph of a trace is the tree. `TokenTree` grows
it as it does any other, where a "token" is a whole message, by its number in the `Transcript`.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym

from sandboxgym.core.errors import MissingDependencyError
from sandboxgym.integrations.apart import grow_apart
from sandboxgym.integrations.credit import mean_return
from sandboxgym.integrations.growth import Dialogue, Plan, Row, Said
from sandboxgym.integrations.verifiers.tasks import GROWN, SandboxData

try:
    import httpx
    import verifiers.v1 as vf
except ImportError as error:
    raise MissingDependencyError(
        'the harness is one of verifiers: pip install "sandboxgym[verifiers]"'
    ) from error


class TreeHarnessConfig(vf.HarnessConfig):
    """Where a tree branches; see `Plan`."""

    roots: int = 2
    branch_at: list[int] = []
    members: int = 2
    max_decisions: int = 50


@dataclass
class Transcript:
    """All messages of a tree by number, and the nodes of the graph that hold what was said.

    Attributes:
        opening: What comes before the first observation.
        messages: In the format of the API.
        nodes: The node of a message, where the model said it.
    """

    opening: list[dict[str, str]]
    messages: list[dict[str, str]] = field(default_factory=list)
    nodes: dict[int, int] = field(default_factory=dict)

    def add(self, role: str, content: str) -> int:
        """Append a message; its number."""
        self.messages.append({"role": role, "content": content})
        return len(self.messages) - 1

    def conversation(self, numbers: Sequence[int]) -> list[dict[str, str]]:
        """Messages by their numbers, after the opening."""
        return self.opening + [self.messages[number] for number in numbers]

    def dialogue(self) -> Dialogue:
        """Observations are the user's messages, actions the assistant's."""

        def told(seen: Any, info: dict[str, Any]) -> list[int]:
            return [self.add("user", str(seen))]

        def action(said: list[int]) -> str:
            return self.messages[said[0]]["content"].strip()

        return Dialogue(opening=told, answer=told, action=action)


class TreeHarness(vf.Harness[TreeHarnessConfig]):
    """Plays a `SandboxTask` as a tree, and credits each of its messages.

    Leaves in `trace.info["sandbox"]` the mean return, the return of every leaf and the credit of
    every node that the model said. Where nodes have tokens, their `advantages` are set so that the
    sum over all branches, shared nodes counted in each, is Σ credit · log π.
    """

    APPENDS_SYSTEM_PROMPT = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: SandboxData,
    ) -> vf.ProgramResult:
        """Grow the tree."""
        system, instructions = self.resolve_text_prompt(data)
        opening = [("system", system), ("user", instructions)]
        said = Transcript([{"role": r, "content": text} for r, text in opening if text])
        ask = functools.partial(self._ask, trace=trace, model=ctx.model, transcript=said)
        headers = {"Authorization": f"Bearer {secret}"}
        async with httpx.AsyncClient(base_url=endpoint, headers=headers, timeout=None) as client:
            try:
                rows = await self._grow(data, said, functools.partial(ask, client))
            except httpx.HTTPStatusError as error:  # a limit of verifiers, or the model's endpoint
                return vf.ProgramResult(1, "", f"{error}: {error.response.text}")
        trace.info[GROWN] = stamp(trace, rows, said.nodes)
        return vf.ProgramResult(0, "", "")

    async def _grow(self, data: SandboxData, said: Transcript, ask: Any) -> list[Row]:
        """Grow the tree by the plan of the configuration."""
        plan = Plan(
            roots=self.config.roots,
            branch_at=tuple(self.config.branch_at),
            members=self.config.members,
            max_decisions=self.config.max_decisions,
        )

        async def generate(prompts: Sequence[list[int]]) -> list[Said]:
            # One after the other: so each answer is the newest node of the graph.
            return [await ask(prompt) for prompt in prompts]

        make = functools.partial(gym.make, data.sandbox, **data.arguments)
        return await grow_apart(make, data.reset, said.dialogue(), plan, generate)

    async def _ask(
        self,
        client: httpx.AsyncClient,
        numbers: list[int],
        *,
        trace: vf.Trace,
        model: str,
        transcript: Transcript,
    ) -> Said:
        body = {"model": model, "messages": transcript.conversation(numbers)}
        response = await client.post("chat/completions", json=body)
        response.raise_for_status()
        text = response.json()["choices"][0]["message"]["content"] or ""
        number = transcript.add("assistant", text)
        transcript.nodes[number] = len(trace.nodes) - 1
        return Said([number], [0.0])


def stamp(trace: vf.Trace, rows: Sequence[Row], nodes: dict[int, int]) -> dict[str, Any]:
    """Credit the nodes of a graph, and tell what the tree returned.

    Args:
        trace: Its nodes get their advantages.
        rows: The leaves of the tree, in messages.
        nodes: The node of each message that the model said.
    """
    credit: dict[int, float] = {}
    for row in rows:
        for number, share in zip(row.tokens, row.credits, strict=True):
            if number in nodes:  # all but one of the rows that share a message have 0 for it
                credit[nodes[number]] = credit.get(nodes[number], 0.0) + share
    branches = Counter(id(node) for branch in trace.branches for node in branch.nodes)
    for index, value in credit.items():
        node = trace.nodes[index]
        node.advantages = [value / branches[id(node)]] * sum(node.mask)
    return {
        "mean_return": mean_return([row.path for row in rows]),
        "returns": [row.total for row in rows],
        "credits": {str(index): value for index, value in credit.items()},
    }
