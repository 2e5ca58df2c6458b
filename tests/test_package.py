"""What holds for the package as a whole: what importing costs, and who imports whom."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LAYERS = {  # who may import what of ours, beside itself
    "sandboxgym/core": set(),
    "sandboxgym/mechanisms": {"core"},
    "sandboxgym/store": {"core"},
    "sandboxgym/conformance": {"core", "mechanisms"},
    "sandboxgym/sandboxes": {"core", "mechanisms"},
    "sandboxgym/pool": {"core", "mechanisms", "store"},
    "sandboxgym/vector.py": {"core", "pool"},
    "sandboxgym/integrations": {"core", "mechanisms", "pool", "vector"},
}
HEAVY = ("torch", "transformers", "textworld", "playwright", "docker", "ray", "matplotlib", "tyro")
INTEGRATED = ("trl", "verl", "verifiers", "openenv")


def imported(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_imports_only_what_lies_below_it(layer):
    own = layer.partition("/")[2].removesuffix(".py")
    allowed = LAYERS[layer] | {own}
    files = [ROOT / layer] if layer.endswith(".py") else (ROOT / layer).rglob("*.py")
    for path in files:
        for name in imported(path):
            if name.startswith("sandboxgym."):
                assert name.split(".")[1] in allowed, f"{path} imports {name}"


def test_the_library_does_not_know_its_learner():
    for path in (ROOT / "sandboxgym").rglob("*.py"):
        assert not any(n.startswith("sandboxgym_learners") for n in imported(path)), path


def test_importing_it_pulls_in_nothing_heavy():
    program = f"import sys, sandboxgym; print([m for m in {HEAVY!r} if m in sys.modules])"
    out = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout
    assert out.strip() == "[]"


@pytest.mark.parametrize("library", INTEGRATED)
def test_a_library_is_imported_in_its_own_integration_alone(library):
    for path in (ROOT / "sandboxgym").rglob("*.py"):
        found = {name.split(".")[0] for name in imported(path)}
        own = path.is_relative_to(ROOT / "sandboxgym/integrations" / library)
        assert own or library not in found, path


def test_importing_it_starts_no_pool_and_loads_none():
    program = "import sys, sandboxgym; print([m for m in sys.modules if '.pool' in m])"
    out = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout
    assert out.strip() == "[]"


def test_what_is_public_exists():
    import sandboxgym as sg

    for name in sg.__all__:
        assert hasattr(sg, name)
