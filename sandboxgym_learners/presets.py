"""Ready-made settings: a model and a world by name, as the options that one could type instead.

`--preset MODEL/WORLD`, such as `--preset qwen2.5-7b/webshop`, stands for these options; others on
the command line override them. Worlds have the horizons of the paper, and the data that comes with
this package: point `--world.arguments` to real games, catalogues or rows.
"""

from __future__ import annotations

from sandboxgym_learners.config import ConfigError

_LARGE = (
    "--policy.answers text --policy.lora 32 --policy.precision bfloat16 --policy.checkpointing "
    "--policy.device cuda --policy.engine vllm --policy.tokens 512 --policy.prompt-tokens 4096 "
    "--cloning.steps 0 --learning.rate 1e-5 --learning.kl 0.01 "
    "--prompt.commands --prompt.observations 4 "
)
MODELS = {
    "qwen2.5-7b": _LARGE + "--policy.model Qwen/Qwen2.5-7B-Instruct",
    "llama-3.1-8b": _LARGE + "--policy.model meta-llama/Llama-3.1-8B-Instruct",
    "smollm2-135m": (
        "--policy.model smollm2-135m --policy.answers text --policy.lora 8 --policy.tokens 48 "
        "--policy.prompt-tokens 1024 --cloning.steps 0 --learning.rate 1e-4 "
        "--policy.checkpointing --prompt.commands --prompt.observations 2 --tree.per-update 1 "
        "--tree.siblings 4"
    ),
    "tiny": "--policy.model tiny",
}
WORLDS = {
    "alfworld": (
        "--world.env sandboxgym/ALFWorld-v0 --world.horizon 40 "
        "--world.arguments source=synthetic difficulty=easy "
        "--world.train split=train --world.held-out split=valid_seen"
    ),
    "webshop": (
        "--world.env sandboxgym/WebShop-v0 --world.horizon 50 --world.arguments num_products=1000 "
        "--world.train split=train --world.held-out split=test"
    ),
    "swebench": (
        "--world.env sandboxgym/SWEBench-v0 --world.horizon 25 --world.arguments rows=shipped "
        "--world.train --world.held-out --world.eval-tasks 30 --cloning.steps 0 "
        "--world.workers 8 --policy.answers text"
    ),
}


def preset(name: str) -> list[str]:
    """The options that a preset stands for.

    Raises:
        ConfigError: There is no such preset.
    """
    model, _, world = name.partition("/")
    if model not in MODELS or world not in WORLDS:
        raise ConfigError(
            f"no preset {name!r}: name a model ({', '.join(MODELS)}), a slash and a world "
            f"({', '.join(WORLDS)})"
        )
    return f"{MODELS[model]} {WORLDS[world]}".split()
