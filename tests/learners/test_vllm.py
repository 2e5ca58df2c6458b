"""The vLLM engine against a stand-in that answers as vLLM documents; the real one needs a GPU."""

import math
import sys
import tempfile
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from sandboxgym_learners.engines.vllm import VLLMEngine


@dataclass
class Parameters:
    max_tokens: int
    temperature: float
    logprobs: int
    top_p: float = 1.0
    top_k: int = -1
    seed: "int | None" = None


class Adapted:
    """A model whose adapter can be saved."""

    def save_pretrained(self, folder):
        folder.mkdir()
        (folder / "adapter_model.safetensors").write_text("weights")


class LLM:
    def __init__(self, **options):
        self.options = options
        self.asked = []

    def generate(self, prompts, requests, *, use_tqdm, lora_request):
        self.asked.append((prompts, requests, lora_request))
        answers = []
        for prompt, request in zip(prompts, requests, strict=True):
            tokens = [sum(prompt["prompt_token_ids"]) % 7, (request.seed or 0) % 5]
            tokens = tokens[: request.max_tokens]
            places = [
                {
                    t: SimpleNamespace(logprob=math.log(0.5)),
                    9: SimpleNamespace(logprob=math.log(0.25)),
                }
                for t in tokens
            ]
            found = SimpleNamespace(token_ids=tokens, logprobs=places)
            answers.append(SimpleNamespace(outputs=[found]))
        return answers


@pytest.fixture
def engine(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    vllm, lora, request = (ModuleType(n) for n in ("vllm", "vllm.lora", "vllm.lora.request"))
    vllm.LLM, vllm.SamplingParams = LLM, Parameters
    request.LoRARequest = lambda name, number, path: (name, number, path)
    for module in (vllm, lora, request):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return VLLMEngine("some/model", Adapted(), rank=4, gpu_memory_utilization=0.4)


def test_siblings_are_requests_of_their_own_at_temperature_one(engine):
    readings = engine.read([[1, 2], [3]])
    texts = engine.write(
        [readings[1], readings[0], readings[0]],
        [np.random.default_rng(1), np.random.default_rng(2), None],
        limit=8,
    )
    prompts, requests, _ = engine._llm.asked[-1]
    assert [prompt["prompt_token_ids"] for prompt in prompts] == [[3], [1, 2], [1, 2]]
    assert [(r.temperature, r.top_p, r.top_k) for r in requests[:2]] == [(1.0, 1.0, -1)] * 2
    assert requests[2].temperature == 0
    assert requests[0].seed != requests[1].seed
    assert requests[0].seed == int(np.random.default_rng(1).integers(2**31))
    assert texts[0].tokens == (3, requests[0].seed % 5)
    assert texts[0].logprobs == pytest.approx([math.log(0.5)] * 2)
    assert engine._llm.options["enable_prefix_caching"] is True
    assert engine._llm.options["gpu_memory_utilization"] == 0.4


def test_the_entropy_counts_the_rest_as_one_token(engine):
    [reading] = engine.read([[1, 2]])
    assert reading.entropy == pytest.approx(1.5 * math.log(2))
    assert engine._llm.asked[-1][1][0].max_tokens == 1


def test_every_update_has_an_adapter_of_its_own_and_old_ones_go(engine, tmp_path):
    engine.write(engine.read([[1]]), [None], limit=1)
    first = engine._llm.asked[-1][2]
    for _ in range(3):
        engine.weights_changed()
    engine.write(engine.read([[1]]), [None], limit=1)
    last = engine._llm.asked[-1][2]
    assert (first[1], last[1]) == (1, 4)
    [folder] = tmp_path.iterdir()
    assert last[2] == str(folder / "000004")
    assert sorted(path.name for path in folder.iterdir()) == ["000003", "000004"]
