"""Generation by transformers, on whatever device the model is, with shared prefixes.

A prompt goes through the model once, however many continuations are drawn from it: keys and values
are kept, and each continuation gets a copy. All continuations of all prompts of a batch advance
together; what has come to its end leaves the batch.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from transformers import Cache, DynamicCache
from transformers.cache_utils import DynamicLayer

from sandboxgym_learners.engines import Reading, Written
from sandboxgym_learners.policy import batches, left_padded, mixing, positions


class _Batch(NamedTuple):
    """Prompts that were read together: what the model kept of them, and what it expects next."""

    cache: Any
    there: Tensor
    logits: Tensor


class _Place(NamedTuple):
    batch: _Batch
    row: int


class _RoomyLayer(DynamicLayer):  # type: ignore[no-untyped-call]
    """Keys and values of one layer, with room for what is still to be written.

    The usual one copies all of them for every token.
    """

    def __init__(self, keys: Tensor, values: Tensor, room: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.lazy_initialization(keys, values)
        self._keys, self._values = _with_room(keys, room), _with_room(values, room)
        self._show(keys.shape[-2])

    def update(
        self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        start, end = self._length, self._length + key_states.shape[-2]
        self._keys[:, :, start:end] = key_states
        self._values[:, :, start:end] = value_states
        return self._show(end)

    def batch_select_indices(self, indices: Tensor) -> None:
        self._keys, self._values = self._keys[indices], self._values[indices]
        self._show(self._length)

    def _show(self, length: int) -> tuple[Tensor, Tensor]:
        self._length = length
        self.keys, self.values = keys, values = (
            self._keys[:, :, :length],
            self._values[:, :, :length],
        )
        return keys, values


class HuggingFaceEngine:
    """Writes with a causal language model of transformers.

    Attributes:
        forward_tokens: How many tokens went through the model so far, padding not counted.
    """

    def __init__(
        self,
        model: Any,
        *,
        ends: Sequence[int],
        pad: int = 0,
        batch_tokens: int = 16384,
        mixed: bool = False,
    ) -> None:
        """Write with `model`.

        Args:
            model: The model; the learner may change its weights at any time.
            ends: The tokens at which a text ends.
            pad: A token to fill up with.
            batch_tokens: How many tokens of prompts are kept at once, padding included.
            mixed: Compute in bfloat16 where that is safe.
        """
        self.model = model
        self.ends = frozenset(ends)
        self.pad = pad
        self.batch_tokens = batch_tokens
        self.mixed = mixed
        self.forward_tokens = 0
        self._cache_name = _cache_name(model)

    @torch.inference_mode()
    def read(self, prompts: Sequence[Sequence[int]]) -> list[Reading]:
        """Read each prompt once."""
        readings: list[Reading | None] = [None] * len(prompts)
        for chosen in batches([len(prompt) for prompt in prompts], tokens=self.batch_tokens):
            tokens, there = left_padded([prompts[i] for i in chosen], self.pad)
            cache = DynamicCache()
            logits = self._forward(tokens, there, positions(there), cache)
            batch = _Batch(cache, there, logits)
            entropies = _entropies(torch.log_softmax(logits, dim=-1)).tolist()
            for row, i in enumerate(chosen):
                self.forward_tokens += len(prompts[i])
                readings[i] = Reading(entropies[row], _Place(batch, row))
        return [reading for reading in readings if reading is not None]

    @torch.inference_mode()
    def write(
        self,
        readings: Sequence[Reading],
        generators: Sequence[np.random.Generator | None],
        *,
        limit: int,
    ) -> list[Written]:
        """Continue each reading; see `Engine.write`."""
        texts: list[Written | None] = [None] * len(readings)
        together: dict[int, list[int]] = {}
        for i, reading in enumerate(readings):
            together.setdefault(id(reading.state.batch), []).append(i)
        for chosen in together.values():
            places = [readings[i].state for i in chosen]
            rows = [place.row for place in places]
            written = self._continue(places[0].batch, rows, [generators[i] for i in chosen], limit)
            for i, text in zip(chosen, written, strict=True):
                texts[i] = text
        return [text for text in texts if text is not None]

    def weights_changed(self) -> None:
        """Nothing to do: the model is the learner's own."""

    def _continue(
        self,
        batch: _Batch,
        rows: Sequence[int],
        generators: Sequence[np.random.Generator | None],
        limit: int,
    ) -> list[Written]:
        """Continue rows of a batch together; a row may occur many times."""
        picked = torch.tensor(rows, device=batch.logits.device)
        cache = _copy(batch.cache, picked, room=limit)
        logits, there = batch.logits[picked], batch.there[picked.cpu()]
        drafts: list[list[tuple[int, float, float]]] = [[] for _ in rows]
        alive = list(range(len(rows)))
        while True:
            log_probs = torch.log_softmax(logits, dim=-1)
            tokens = _pick(log_probs, [generators[i] for i in alive])
            chances = log_probs.gather(1, tokens.to(log_probs.device)[:, None])[:, 0].tolist()
            entropies = _entropies(log_probs).tolist()
            for i, token, chance, spread in zip(
                alive, tokens.tolist(), chances, entropies, strict=True
            ):
                drafts[i].append((token, chance, spread))
            going = [
                row
                for row, i in enumerate(alive)
                if drafts[i][-1][0] not in self.ends and len(drafts[i]) < limit
            ]
            if not going:
                break
            if len(going) < len(alive):
                alive = [alive[row] for row in going]
                kept = torch.tensor(going)
                tokens, there = tokens[kept], there[kept]
                cache.batch_select_indices(kept.to(logits.device))
            there = torch.cat([there, torch.ones_like(there[:, :1])], dim=1)
            logits = self._forward(tokens[:, None], there, there.sum(1, keepdim=True) - 1, cache)
            self.forward_tokens += len(alive)
        return [Written(*map(tuple, zip(*draft, strict=True))) for draft in drafts]

    def _forward(self, tokens: Tensor, there: Tensor, positions: Tensor, cache: Any) -> Tensor:
        """The logits after the last token of every row; the cache grows."""
        device = self.model.device
        with mixing(device, self.mixed):
            output = self.model(
                input_ids=tokens.to(device),
                attention_mask=there.to(device),
                position_ids=positions.to(device),
                use_cache=True,
                logits_to_keep=1,
                **{self._cache_name: cache},
            )
        logits: Tensor = output.logits[:, -1].float()
        return logits


def _cache_name(model: Any) -> str:
    """Transformers has renamed the argument `past_key_values` to `cache`, some day after 5.17."""
    inner = model.get_base_model() if hasattr(model, "get_base_model") else model
    return "cache" if "cache" in inspect.signature(inner.forward).parameters else "past_key_values"


def _copy(cache: Any, rows: Tensor, *, room: int) -> Any:
    """A new cache with some rows of another one, which stays as it is, and room for tokens."""
    return Cache(
        [_RoomyLayer(layer.keys[rows], layer.values[rows], room) for layer in cache.layers]
    )


def _with_room(states: Tensor, room: int) -> Tensor:
    rows, heads, _, width = states.shape
    return torch.cat([states, states.new_empty(rows, heads, room, width)], dim=2)


def _pick(log_probs: Tensor, generators: Sequence[np.random.Generator | None]) -> Tensor:
    """A token for each row: drawn by the row's own generator, or the most likely one."""
    reached = log_probs.double().exp().cumsum(dim=1)
    points = [0.0 if g is None else g.random() for g in generators]
    aims = torch.tensor(points, dtype=torch.float64, device=reached.device) * reached[:, -1]
    drawn = torch.searchsorted(reached, aims[:, None], right=True)[:, 0]
    drawn = drawn.clamp(max=log_probs.shape[1] - 1).cpu()
    likely = torch.tensor([generator is None for generator in generators])
    return torch.where(likely, log_probs.argmax(dim=1).cpu(), drawn)


def _entropies(log_probs: Tensor) -> Tensor:
    return -(log_probs.exp() * log_probs.clamp(min=-1e9)).sum(dim=1)
