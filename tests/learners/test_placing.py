from __future__ import annotations

import sys

import accelerate
import pytest
import torch

from sandboxgym.core.errors import MissingDependencyError
from sandboxgym_learners.config import PolicyConfig
from sandboxgym_learners.models import new_policy
from sandboxgym_learners.placing import placed
from sandboxgym_learners.policy import PolicyError, Query

QUERIES = [Query("Task: go.\nAction:", ("go left", "go right", "look"))]


def texts():
    return ["Task: go. Action:", "go left", "go right", "look"]


def policy(**settings):
    config = PolicyConfig(width=16, layers=4, **settings)
    return new_policy(config, "command", texts, seed=0)


@pytest.mark.parametrize("lora", [0, 2])
def test_auto_computes_what_one_device_computes(lora):
    one, spread = policy(lora=lora), policy(lora=lora, device="auto")
    assert set(spread.model.hf_device_map.values()) == {"cpu"}
    assert one.consider(QUERIES)[0].entropy == spread.consider(QUERIES)[0].entropy


def test_layers_in_several_places_give_the_same_gradient(monkeypatch):
    """With accelerate's hooks around every layer, as it puts them on several devices."""
    one = policy()
    real = accelerate.dispatch_model

    def in_pieces(model, places):
        places = {"model.embed_tokens": "cpu", "model.norm": "cpu", "model.rotary_emb": "cpu"}
        places |= {f"model.layers.{i}": "cpu" for i in range(4)} | {"lm_head": "cpu"}
        return real(model, places, force_hooks=True)

    monkeypatch.setattr(accelerate, "dispatch_model", in_pieces)
    spread = policy(device="auto")
    assert hasattr(spread.model.model.layers[2], "_hf_hook")
    for each in (one, spread):
        each.log_probs(each.encode(QUERIES))[0, 0].backward()
    for name, parameter in one.model.named_parameters():
        torch.testing.assert_close(parameter.grad, spread.model.get_parameter(name).grad)


def test_a_model_that_no_device_holds_is_refused(monkeypatch):
    memory = {0: 10, "cpu": 10**12}
    monkeypatch.setattr("accelerate.utils.get_balanced_memory", lambda *_, **__: memory)
    with pytest.raises(PolicyError, match="does not fit into the memory of 1 GPUs"):
        placed(policy().model, "auto")


def test_auto_without_accelerate_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "accelerate", None)
    with pytest.raises(MissingDependencyError, match="pip install accelerate"):
        placed(policy().model, "auto")
