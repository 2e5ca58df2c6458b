"""Agent loops of verl that play sandboxes.

`EpisodeAgentLoop` plays one episode a row. `TreeAgentLoop` makes the `rollout.n` rows of a prompt
into one tree, a row for each segment. Both are made by verl from a file of agent loops:

```yaml
- name: sandbox_tree
  _target_: sandboxgym.integrations.verl.loops.TreeAgentLoop
  sandbox: sandboxgym/ALFWorld-v0
  arguments: {source: synthetic}
  plan: {roots: 2, branch_at: [5], members: 2, max_decisions: 25}
```

A row of the data set says by its column `agent_name` which loop plays it, so that trees can be for
training and episodes for validation, and by `reset` how to reset: the keywords of `env.reset`.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple
from uuid import uuid4

import gymnasium as gym

from sandboxgym.core.errors import MissingDependencyError, SandboxGymError
from sandboxgym.integrations.apart import grow_apart
from sandboxgym.integrations.chat import chat_dialogue
from sandboxgym.integrations.credit import mean_return
from sandboxgym.integrations.growth import Dialogue, Plan, Row, Said
from sandboxgym.integrations.pieces import Piece, most_pieces, pieces

try:
    from omegaconf import OmegaConf
    from verl.experimental.agent_loop.agent_loop import (
        AgentLoopBase,
        AgentLoopMetrics,
        AgentLoopOutput,
    )
except ImportError as error:
    raise MissingDependencyError(
        'these are agent loops of verl: pip install "sandboxgym[verl]"'
    ) from error


class TreeRowsError(SandboxGymError, ValueError):
    """The rows that verl asked for, or their lengths, do not fit a tree."""


def _plain(given: Any) -> dict[str, Any]:
    """What a configuration holds, without the classes of OmegaConf."""
    plain: Any = OmegaConf.to_container(given) if OmegaConf.is_config(given) else given
    return dict(plain or {})


class EpisodeAgentLoop(AgentLoopBase):
    """Plays one episode a row; the reward is its return.

    Args:
        sandbox: Id of an environment whose actions are texts.
        arguments: For `gymnasium.make`.
        plan: The fields of a `Plan`.
        turn_tokens: The most tokens of one answer.
        **verl: As verl gives it.
    """

    def __init__(
        self,
        *,
        sandbox: str,
        arguments: dict[str, Any] | None = None,
        plan: dict[str, Any] | None = None,
        turn_tokens: int = 128,
        **verl: Any,
    ) -> None:
        super().__init__(**verl)
        self.make = functools.partial(gym.make, sandbox, **_plain(arguments))
        fields = {"roots": 1, "max_tokens": self.rollout_config.response_length, **_plain(plan)}
        self.plan = Plan(**{**fields, "branch_at": tuple(fields.get("branch_at", ()))})
        self.turn_tokens = turn_tokens

    async def run(self, sampling_params: dict[str, Any], **kwargs: Any) -> AgentLoopOutput:
        """Play the episode of a row of the data set."""
        (row,) = await self.grow(sampling_params, kwargs)
        return self.output(Piece(*row[:4], credit=0.0), reward=row.total, returned=row.total)

    async def grow(self, sampling_params: dict[str, Any], given: dict[str, Any]) -> list[Row]:
        """Grow a tree by the plan, every branch at the same time."""
        sampling = {**sampling_params, "max_tokens": self.turn_tokens}

        async def say(prompt: list[int]) -> Said:
            output = await self.server_manager.generate(
                request_id=uuid4().hex, prompt_ids=prompt, sampling_params=sampling
            )
            return Said(output.token_ids, output.log_probs or [0.0] * len(output.token_ids))

        async def generate(prompts: Sequence[list[int]]) -> list[Said]:
            return list(await asyncio.gather(*map(say, prompts)))

        dialogue = self.dialogue(list(given["raw_prompt"]))
        reset = dict(given.get("reset") or {})
        return await grow_apart(self.make, reset, dialogue, self.plan, generate)

    def dialogue(self, opening: list[dict[str, str]]) -> Dialogue:
        """How episodes become tokens: by the chat template, after the prompt of the data set."""
        return chat_dialogue(self.tokenizer, opening)

    def output(self, piece: Piece, *, reward: float, returned: float) -> AgentLoopOutput:
        """A row as verl wants it, and for its log what the policy returned."""
        limits = self.rollout_config
        for name, tokens in (("prompt", piece.prompt), ("response", piece.tokens)):
            limit = limits[f"{name}_length"]
            if len(tokens) > limit:
                raise TreeRowsError(
                    f"a {name} has {len(tokens)} tokens and rollout.{name}_length is {limit}; the "
                    "prompt of a segment is all that came before it: raise that, or lower "
                    "plan.max_tokens or turn_tokens"
                )
        return AgentLoopOutput(
            prompt_ids=piece.prompt,
            response_ids=piece.tokens,
            response_mask=piece.mask,
            response_logprobs=piece.logprobs if limits.get("calculate_log_probs") else None,
            reward_score=reward,
            num_turns=2,
            metrics=AgentLoopMetrics(),
            extra_fields={"reward_extra_info": {"episode_return": returned}},
        )


class TreeAgentLoop(EpisodeAgentLoop):
    """Makes the rows of one prompt into one tree; the reward of a row is the credit of a segment.

    verl starts the `rollout.n` runs of a prompt together. The first of them grows the tree, and
    every run returns one of its segments. Where episodes ended before they branched there are fewer
    segments than rows; those that are left over are empty and masked.
    """

    _meetings: ClassVar[dict[Any, _Meeting]] = {}

    async def run(self, sampling_params: dict[str, Any], **kwargs: Any) -> AgentLoopOutput:
        """Return a segment of the tree that this row is part of."""
        uid = kwargs["uid"]
        meeting = self._meetings.setdefault(uid, _Meeting())
        number = meeting.join()
        if number == 0:
            try:
                await asyncio.sleep(0)  # the others have started by now
                del self._meetings[uid]
                meeting.tree.set_result(await self._tree(sampling_params, kwargs, meeting.runs))
            except BaseException as error:
                meeting.fail(error)
                raise
        tree = await meeting.tree
        piece = tree.pieces[number]
        return self.output(piece, reward=piece.credit, returned=tree.mean_return)

    async def _tree(
        self, sampling_params: dict[str, Any], given: dict[str, Any], runs: int
    ) -> _Tree:
        expected = most_pieces(self.plan)
        if runs != expected:
            raise TreeRowsError(
                f"a tree by {self.plan} has {expected} segments, and {runs} rows of one prompt "
                f"came to this worker: set rollout.n={expected}, and rollout.agent.num_workers to "
                "a divisor of the number of prompts in a batch"
            )
        rows = await self.grow(sampling_params, given)
        found = pieces(rows)
        empty = Piece(found[0].prompt, [self.tokenizer.eos_token_id], [0], [0.0], 0.0)
        value = mean_return([row.path for row in rows])
        return _Tree(found + [empty] * (expected - len(found)), value)


class _Tree(NamedTuple):
    pieces: list[Piece]
    mean_return: float


class _Meeting:
    """Runs of one prompt that wait for their tree."""

    def __init__(self) -> None:
        self.runs = 0
        self.tree: asyncio.Future[_Tree] = asyncio.get_running_loop().create_future()

    def join(self) -> int:
        """The number of this run."""
        self.runs += 1
        return self.runs - 1

    def fail(self, error: BaseException) -> None:
        """Let all others fail for the same reason."""
        if isinstance(error, Exception):
            self.tree.set_exception(error)
            self.tree.exception()  # it is no fault if no other run is there to see it
        else:
            self.tree.cancel()
