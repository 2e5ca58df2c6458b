from __future__ import annotations

import copy

import pytest
import torch

from sandboxgym_learners.cloning import clone
from sandboxgym_learners.config import CloningConfig
from sandboxgym_learners.prompts import PromptFormat
from sandboxgym_learners.scoring import ScoringPolicy
from sandboxgym_learners.worlds import WorldConfig, demonstrations, sample_texts

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
