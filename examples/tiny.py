"""What the examples share: two small games, and a model for two cores that has read their plans.

A model with random weights would never win, and every advantage would be zero. So this one first
learns to say what the plans say, for some seconds; drawn at temperature 1, it then wins now and
again. Take your own model and your own games instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

import sandboxgym as sg  # noqa: F401 - registers the sandboxes
from sandboxgym.integrations.growth import Dialogue

GAMES = 2
END, PAD, IGNORED = "<|im_end|>", "<|endoftext|>", -100
SPECIAL = [PAD, END, "<|im_start|>"]


class Turn(NamedTuple):
    """What was seen, and what the plan says to do."""

    seen: str
    command: str


def make_env(**further: Any) -> gym.Env[str, str]:
    """Short household tasks, generated: nothing is downloaded."""
    return gym.make(
        "sandboxgym/ALFWorld-v0",
        source="synthetic",
        difficulty="easy",
        num_games=GAMES,
        **further,
    )


def plans() -> list[list[Turn]]:
    """A way to win each game."""
    env = make_env(expert_plan=True)
    played = []
    for game in range(GAMES):
        seen, info = env.reset(seed=game, options={"index": game})
        turns, ended = [], False
        while not ended:
            command = info["expert_plan"][0]
            turns.append(Turn(seen, command))
            seen, _, ended, _, info = env.step(command)
        played.append(turns)
    env.close()
    return played


def build_tokenizer(texts: Sequence[str]) -> PreTrainedTokenizerFast:
    """A byte-level tokenizer, which loses nothing, with pieces that are frequent in `texts`."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=800, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
        ),
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=PAD, eos_token=END, clean_up_tokenization_spaces=False
    )


def build_model(tokenizer: PreTrainedTokenizerFast) -> Qwen2ForCausalLM:
    """A small Qwen2 with random weights."""
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=96,
        intermediate_size=192,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=4096,
        initializer_range=0.1,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )
    return Qwen2ForCausalLM(config)


def dialogue(tokenizer: PreTrainedTokenizerFast) -> Dialogue:
    """Plain text: what is seen, a line, the command, the end."""

    def told(seen: str, info: dict[str, Any]) -> list[int]:
        return tokenizer(f"{seen}\n> ")["input_ids"]

    def action(said: list[int]) -> str:
        return tokenizer.decode(said, skip_special_tokens=True).strip()

    return Dialogue(opening=told, answer=told, action=action)


class Sample(NamedTuple):
    """A text, and which of its tokens the model is to say."""

    tokens: list[int]
    said: list[bool]


def plan_samples(tokenizer: PreTrainedTokenizerFast) -> list[Sample]:
    """The plans, in the format of `dialogue`."""
    told, samples = dialogue(tokenizer), []
    for turns in plans():
        sample = Sample([], [])
        for seen, command in turns:
            heard, said = told.answer(seen, {}), tokenizer(command + END)["input_ids"]
            sample.tokens.extend(heard + said)
            sample.said.extend([False] * len(heard) + [True] * len(said))
        samples.append(sample)
    return samples


def clone(model: Qwen2ForCausalLM, samples: Sequence[Sample], *, steps: int) -> float:
    """Teach the model to say what is said in some samples; the loss at the end."""
    longest = max(len(sample.tokens) for sample in samples)
    ids = torch.full((len(samples), longest), model.config.pad_token_id)
    labels = torch.full_like(ids, IGNORED)
    for row, (tokens, said) in enumerate(samples):
        ids[row, : len(tokens)] = torch.tensor(tokens)
        labels[row, : len(tokens)][torch.tensor(said)] = torch.tensor(tokens)[torch.tensor(said)]
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    model.train()
    for _ in range(steps):
        loss = model(input_ids=ids, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(loss.detach())


def texts() -> list[str]:
    """What the tokenizer is made of."""
    return [f"{seen}\n> {command}" for turns in plans() for seen, command in turns]


def cloned(*, steps: int = 14) -> tuple[Qwen2ForCausalLM, PreTrainedTokenizerFast]:
    """The model of most examples, and its tokenizer."""
    tokenizer = build_tokenizer(texts())
    model = build_model(tokenizer)
    loss = clone(model, plan_samples(tokenizer), steps=steps)
    print(f"cloned the plans of {GAMES} games: loss {loss:.2f}")
    return model, tokenizer
