from __future__ import annotations

import copy

import pytest
import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from sandboxgym_learners.chat import end_tokens
from sandboxgym_learners.cloning import clone
from sandboxgym_learners.config import CloningConfig
from sandboxgym_learners.engines.huggingface import HuggingFaceEngine
from sandboxgym_learners.prompts import PromptFormat
from sandboxgym_learners.scoring import ScoringPolicy
from sandboxgym_learners.tokenizer import byte_tokenizer
from sandboxgym_learners.worlds import WorldConfig, demonstrations, sample_texts
from sandboxgym_learners.writing import WritingConfig, WritingPolicy

ERRANDS = WorldConfig(
    env="tests.learners.errands:tests/Errands-v0",
    arguments=(),
    train=("split=train",),
    held_out=("split=test",),
    train_tasks=40,
    eval_tasks=20,
)


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def errands() -> WorldConfig:
    return ERRANDS


@pytest.fixture(scope="session")
def errand_texts() -> list[str]:
    return sample_texts(ERRANDS.make_train(), range(10), PromptFormat(), seed=0)


@pytest.fixture(scope="session")
def cloned(errand_texts) -> ScoringPolicy:
    """A policy that imitated for a moment: neither flat nor certain anywhere."""
    torch.set_num_threads(1)
    made = ScoringPolicy.tiny(errand_texts, seed=3, width=16)
    expert = demonstrations(ERRANDS.make_expert(), range(40), PromptFormat(), detour=4)
    clone(made, list(expert), CloningConfig(steps=60, batch=16, rate=1e-2), seed=0)
    return made


@pytest.fixture
def policy(cloned) -> ScoringPolicy:
    return ScoringPolicy(copy.deepcopy(cloned.model), cloned.tokenizer)


@pytest.fixture(scope="session")
def chat_model():
    """A tiny model with random weights that reads and writes bytes."""
    tokenizer = byte_tokenizer()
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        tie_word_embeddings=True,
        initializer_range=0.1,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    torch.manual_seed(0)
    return Qwen2ForCausalLM(config).eval(), tokenizer


@pytest.fixture
def writer(chat_model) -> WritingPolicy:
    model, tokenizer = copy.deepcopy(chat_model[0]), chat_model[1]
    engine = HuggingFaceEngine(model, ends=end_tokens(model, tokenizer), pad=0)
    return WritingPolicy(model, tokenizer, engine, WritingConfig(tokens=12, prompt_tokens=1200))
