"""A policy over the commands that the environment admits, by the scores of a language model.

A command's score is its log-probability after the prompt, summed over its tokens; the policy is the
softmax of the scores. All commands of one prompt are scored in one sequence:

```
prompt prompt prompt | go to cabinet desk … open …        a trie: shared beginnings come once
```

An attention mask lets every token of the trie see the prompt and its own ancestors alone, and
position ids give it the place that it has in its command. So the prompt is computed once however
many commands there are, and so is "go to". The last token of a command has to be predicted, but
never read, and is not in the sequence.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from sandboxgym_learners.policy import (
    Act,
    Judgement,
    Outlook,
    Policy,
    PolicyError,
    Query,
    batches,
    draw,
    entropy,
)
from sandboxgym_learners.tokenizer import build_tokenizer
from sandboxgym_learners.tree import Step


@dataclass(frozen=True, slots=True)
class Trie:
    """Commands as a tree of tokens, without the last token of each.

    Attributes:
        tokens: The token of every node, parents first.
        depths: Its place in its command, from 1.
        ancestors: `ancestors[i, j]` says whether node i sees node j; it sees itself.
        edges: For every token of every command: the command's index, the node before the token (0
            for the end of the prompt, else node + 1), the token.
        commands: How many commands there are.
    """

    tokens: NDArray[np.int64]
    depths: NDArray[np.int64]
    ancestors: NDArray[np.bool_]
    edges: NDArray[np.int64]
    commands: int

    @classmethod
    def of(cls, commands: Sequence[Sequence[int]]) -> Trie:
        """Build the tree of some commands."""
        nodes: dict[tuple[int, ...], int] = {(): 0}
        edges = []
        for index, command in enumerate(commands):
            for end, token in enumerate(command):
                before = nodes.setdefault(tuple(command[:end]), len(nodes))
                edges.append((index, before, token))
        paths = list(nodes)[1:]
        ancestors = np.zeros((len(paths), len(paths)), dtype=bool)
        for row, path in enumerate(paths):
            for end in range(1, len(path) + 1):
                ancestors[row, nodes[path[:end]] - 1] = True
        return cls(
            tokens=np.array([path[-1] for path in paths], dtype=np.int64),
            depths=np.array([len(path) for path in paths], dtype=np.int64),
            ancestors=ancestors,
            edges=np.array(edges, dtype=np.int64).T,
            commands=len(commands),
        )


class Encoded(NamedTuple):
    """A query in tokens."""

    prompt: list[int]
    trie: Trie
    commands: tuple[tuple[int, ...], ...]

    @property
    def length(self) -> int:
        """How many tokens go through the model."""
        return len(self.prompt) + len(self.trie.tokens)


def tiny_model(tokenizer: Any, *, seed: int, width: int = 64, layers: int = 2) -> Any:
    """A small Qwen2 with random weights, for the vocabulary of a tokenizer."""
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
        initializer_range=0.1,  # the usual 0.02 suits wide models; this one would start slowly
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Qwen2ForCausalLM(config)


def pretrained(name: str | Path) -> tuple[Any, Any]:
    """A model and its tokenizer as transformers know them, by a name or from a folder."""
    model = AutoModelForCausalLM.from_pretrained(name)
    # What tokenizer.json says; AutoTokenizer may rebuild another one from the model's type.
    return model, PreTrainedTokenizerFast.from_pretrained(name)


class Choice(NamedTuple):
    """A query in tokens, and which of its commands was chosen."""

    encoded: Encoded
    chosen: int

    @property
    def prompt(self) -> list[int]:
        """The tokens in front of the commands."""
        return self.encoded.prompt

    @property
    def length(self) -> int:
        """How many tokens go through the model."""
        return self.encoded.length


class ScoringPolicy(Policy):
    """Scores commands with any `AutoModelForCausalLM`."""

    def __init__(
        self, model: Any, tokenizer: Any, *, mixed: bool = False, recomputes: bool = False
    ) -> None:
        super().__init__(model, tokenizer, mixed=mixed, recomputes=recomputes)
        self._trie = functools.lru_cache(maxsize=4096)(Trie.of)
        self._command = functools.lru_cache(maxsize=65536)(self._tokenize_command)
        self._packed = self._packing_agrees()
        if not self._packed:
            warnings.warn(
                f"{type(model).__name__} does not follow a mask and positions of one's own: every "
                "command is scored in a sequence of its own, which is slower",
                stacklevel=2,
            )

    @classmethod
    def tiny(
        cls, texts: Sequence[str], *, seed: int, width: int = 64, layers: int = 2
    ) -> ScoringPolicy:
        """A small Qwen2 with random weights, and the words of `texts` as its vocabulary."""
        tokenizer = build_tokenizer(texts)
        return cls(tiny_model(tokenizer, seed=seed, width=width, layers=layers), tokenizer)

    @classmethod
    def load(cls, folder: str | Path) -> ScoringPolicy:
        """Load a model and its tokenizer in the format of transformers."""
        try:
            model, tokenizer = pretrained(folder)
        except (OSError, ValueError) as error:
            raise PolicyError(f"no causal language model could be loaded: {error}") from error
        return cls(model, tokenizer)

    def encode(self, queries: Sequence[Query]) -> list[Encoded]:
        """Turn queries into tokens."""
        prompts = self.tokenizer([query.prompt for query in queries])["input_ids"]
        encoded = []
        for query, prompt in zip(queries, prompts, strict=True):
            if not query.candidates:
                raise PolicyError(f"no command to choose among after the prompt {query.prompt!r}")
            commands = tuple(self._command(command) for command in query.candidates)
            encoded.append(Encoded(prompt, self._trie(commands), commands))
        return encoded

    def consider(self, queries: Sequence[Query]) -> list[Outlook]:
        """Score the commands of every query; of equal ones, as siblings often have, once."""
        different = list(dict.fromkeys(queries))
        encoded = self.encode(different)
        self.forward_tokens += sum(item.length for item in encoded)
        known = {
            query: Outlook(query, entropy(log_probs), "commands", log_probs)
            for query, log_probs in zip(different, self.decide(encoded), strict=True)
        }
        return [known[query] for query in queries]

    def draw(
        self, outlooks: Sequence[Outlook], generators: Sequence[np.random.Generator]
    ) -> list[Act]:
        """Draw a command for each outlook."""
        acts = []
        for outlook, generator in zip(outlooks, generators, strict=True):
            choice = draw(outlook.state, generator)
            action = outlook.query.candidates[choice]
            tokens = len(self._command(action))
            acts.append(Act(action, float(outlook.state[choice]), tokens, choice))
        return acts

    def recall(self, steps: Sequence[Step]) -> list[Choice]:
        """Decisions of a tree, in tokens; equal queries are one object."""
        queries = [Query(step.prompt, step.candidates) for step in steps]
        different = list(dict.fromkeys(queries))
        encoded = dict(zip(different, self.encode(different), strict=True))
        return [
            Choice(encoded[query], step.choice) for query, step in zip(queries, steps, strict=True)
        ]

    def judge(self, taken: Sequence[Choice]) -> Judgement:
        """The log π of what was chosen, and of all that could have been."""
        different = {id(choice.encoded): choice.encoded for choice in taken}
        places = {key: place for place, key in enumerate(different)}
        each = [places[id(choice.encoded)] for choice in taken]
        rows = self.log_probs(list(different.values()))[each]
        picked = torch.tensor([[choice.chosen] for choice in taken], device=rows.device)
        safe = rows.masked_fill(~torch.isfinite(rows), 0.0)
        spread = -torch.where(torch.isfinite(rows), safe.exp() * safe, 0.0).sum(1)
        return Judgement(rows.gather(1, picked), torch.ones_like(picked), spread, rows)

    def divergence(self, rows: Tensor, reference: Tensor) -> Tensor:
        """KL(π ‖ reference), exactly, over the commands there are."""
        there = torch.isfinite(rows)
        safe = torch.where(there, rows, 0.0)
        apart = safe - torch.where(there, reference, 0.0)
        return torch.where(there, safe.exp() * apart, 0.0).sum(1)

    def log_probs(self, batch: Sequence[Encoded]) -> Tensor:
        """The log π of every command, with gradient: a row a query, padded with -inf."""
        scores = self._scores_packed(batch) if self._packed else self.scores_one_by_one(batch)
        return torch.log_softmax(scores, dim=1)

    @torch.no_grad()
    def decide(self, encoded: Sequence[Encoded]) -> list[NDArray[np.float64]]:
        """The log π of the commands of every query, for as many queries as there are."""
        answers: list[NDArray[np.float64]] = [np.empty(0)] * len(encoded)
        for batch in batches([item.length for item in encoded]):
            rows = self.log_probs([encoded[i] for i in batch]).double().cpu().numpy()
            for i, row in zip(batch, rows, strict=True):
                answers[i] = row[: encoded[i].trie.commands]
        return answers

    def _scores_packed(self, batch: Sequence[Encoded]) -> Tensor:
        """Scores of all commands, one sequence a query: [pad…, prompt, trie, pad…]."""
        layout = _pack(batch, self.pad)
        device, dtype = self.model.device, self.model.dtype
        mask = torch.zeros(layout.visible.shape, dtype=dtype)
        mask.masked_fill_(~torch.from_numpy(layout.visible), torch.finfo(dtype).min)
        logits = self.forward(
            input_ids=torch.from_numpy(layout.tokens).to(device),
            attention_mask=mask[:, None].to(device),
            position_ids=torch.from_numpy(layout.positions).to(device),
            use_cache=False,
            logits_to_keep=layout.kept,
        ).logits
        log_probs = torch.log_softmax(logits.float(), dim=-1)
        rows, nodes, tokens, commands = torch.from_numpy(layout.edges).to(device)
        width = max(item.trie.commands for item in batch)
        sums = torch.zeros(len(batch) * width, device=device)
        sums = sums.index_add(0, rows * width + commands, log_probs[rows, nodes, tokens])
        padded = torch.tensor([[i >= item.trie.commands for i in range(width)] for item in batch])
        return sums.view(len(batch), width).masked_fill(padded.to(device), -torch.inf)

    def scores_one_by_one(self, batch: Sequence[Encoded]) -> Tensor:
        """The same scores, each command behind a prompt of its own, with nothing shared."""
        width = max(item.trie.commands for item in batch)
        rows = []
        for item in batch:
            scores = []
            for command in item.commands:
                tokens = torch.tensor([[*item.prompt, *command]], device=self.model.device)
                logits = self.forward(input_ids=tokens, use_cache=False).logits
                before = logits[0, -len(command) - 1 : -1].float()
                picked = torch.log_softmax(before, dim=-1)[range(len(command)), list(command)]
                scores.append(picked.sum())
            scores += [torch.tensor(-torch.inf, device=self.model.device)] * (width - len(scores))
            rows.append(torch.stack(scores))
        return torch.stack(rows)

    @torch.no_grad()
    def _packing_agrees(self) -> bool:
        """Whether this model gives packed sequences the scores of separate ones."""
        commands = ("look", "go to the left", "go to the right", "go back")
        batch = self.encode([Query("Task: go.", commands), Query("A longer task: go.", commands)])
        try:
            packed = self._scores_packed(batch)
        except (TypeError, ValueError, RuntimeError):
            return False  # it takes no such mask, positions, or choice of logits
        return torch.allclose(packed, self.scores_one_by_one(batch), atol=1e-3, rtol=1e-3)

    def _tokenize_command(self, command: str) -> tuple[int, ...]:
        tokens = tuple(self.tokenizer(f" {command}", add_special_tokens=False)["input_ids"])
        if not tokens:
            raise PolicyError(f"the command {command!r} has no token, so it cannot be scored")
        return tokens


class _Layout(NamedTuple):
    """Packed sequences, and where to find the scores in what the model returns.

    `kept` counts the last positions of each row: the end of the prompt and the trie. `edges` has
    for every token to be predicted its row, the place among the kept, the token and the command.
    """

    tokens: NDArray[np.int64]
    positions: NDArray[np.int64]
    visible: NDArray[np.bool_]
    edges: NDArray[np.int64]
    kept: int


def _pack(batch: Sequence[Encoded], pad: int) -> _Layout:
    longest = max(len(item.prompt) for item in batch)
    kept = 1 + max(len(item.trie.tokens) for item in batch)
    size = longest + kept - 1
    tokens = np.full((len(batch), size), pad, dtype=np.int64)
    positions = np.zeros((len(batch), size), dtype=np.int64)
    visible = np.zeros((len(batch), size, size), dtype=bool)
    visible[:] = np.eye(size, dtype=bool)  # padding sees itself, so that its softmax is defined
    causal = np.tri(longest, dtype=bool)
    for row, (prompt, trie, _) in enumerate(batch):
        start, end = longest - len(prompt), longest + len(trie.tokens)
        tokens[row, start:longest] = prompt
        tokens[row, longest:end] = trie.tokens
        positions[row, start:longest] = np.arange(len(prompt))
        positions[row, longest:end] = len(prompt) - 1 + trie.depths
        visible[row, start:longest, start:longest] = causal[start:, start:]
        visible[row, longest:end, start:longest] = True
        visible[row, longest:end, longest:end] = trie.ancestors
    edges = [
        (np.full(len(tokens_), row), nodes, tokens_, commands)
        for row, (commands, nodes, tokens_) in enumerate(item.trie.edges for item in batch)
    ]
    return _Layout(tokens, positions, visible, np.concatenate(edges, axis=1), kept)
