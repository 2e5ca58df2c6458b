"""What siblings save that share the reading of their prefix: the same tokens, in less time.

K continuations of one prompt, drawn by the same generators: once each behind a prompt that is read
for it alone, in one batch, once all behind a prompt that is read once.

    python -m benchmarks.prefix_cache [--model smollm2-135m] [--out prefix_cache.json]

writes processor seconds of both, and whether the tokens were the same.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForCausalLM, Qwen2Config, Qwen2ForCausalLM

from sandboxgym_learners.engines.huggingface import HuggingFaceEngine
from sandboxgym_learners.smollm import smollm2

RESULTS = Path(__file__).parent / "results" / "prefix_cache.json"


def small_model() -> Any:
    """A model with random weights that takes no seconds to load."""
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=4096,
        hidden_size=256,
        intermediate_size=768,
        num_hidden_layers=6,
        num_attention_heads=4,
        num_key_value_heads=2,
        tie_word_embeddings=True,
    )
    return Qwen2ForCausalLM(config).eval()


def measure(model: Any, *, prefix: int, siblings: int, tokens: int, repeats: int) -> dict[str, Any]:
    """Draw siblings with and without a shared prefix, by turns."""
    prompt = np.random.default_rng(0).integers(10, model.config.vocab_size, prefix).tolist()
    seconds: dict[str, list[float]] = {"shared": [], "separate": []}
    drawn = {}
    for repeat in range(repeats):
        for name, times in seconds.items():
            engine = HuggingFaceEngine(model, ends=[])
            generators = [np.random.default_rng((repeat, n)) for n in range(siblings)]
            begin = time.process_time()
            if name == "shared":
                readings = engine.read([prompt]) * siblings
            else:
                readings = engine.read([prompt] * siblings)
            texts = engine.write(readings, generators, limit=tokens)
            times.append(time.process_time() - begin)
            drawn[name] = [text.tokens for text in texts]
        if drawn["shared"] != drawn["separate"]:
            raise SystemExit("the tokens differ")
    middle = {name: statistics.median(times) for name, times in seconds.items()}
    return {
        "prefix_tokens": prefix,
        "siblings": siblings,
        "written_tokens": tokens,
        "cpu_s": middle,
        "times_as_fast": middle["separate"] / middle["shared"],
        "same_tokens": True,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default="smollm2-135m", help='or "small", or a folder')
    parser.add_argument("--prefix", type=int, default=600)
    parser.add_argument("--siblings", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.model == "small":
        model = small_model()
    else:
        folder = smollm2() if options.model == "smollm2-135m" else options.model
        model = AutoModelForCausalLM.from_pretrained(folder).eval()
    result = measure(
        model,
        prefix=options.prefix,
        siblings=options.siblings,
        tokens=options.tokens,
        repeats=options.repeats,
    )
    machine = {"machine": platform.processor() or platform.machine(), "torch": torch.__version__}
    text = json.dumps({"model": options.model, **result, **machine}, indent=2)
    options.out.write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
