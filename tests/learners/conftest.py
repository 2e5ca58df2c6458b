from __future__ import annotations

import pytest
import torch

from sandboxgym_learners.policy import Policy
from sandboxgym_learners.prompts import PromptFormat
from sandboxgym_learners.worlds import WorldConfig, sample_texts

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


@pytest.fixture
def policy(errand_texts) -> Policy:
    """A random policy of the errands that is neither flat nor certain."""
    made = Policy.tiny(errand_texts, seed=3, width=16)
    with torch.no_grad():
        made.model.get_input_embeddings().weight *= 20
    return made
