"""What a plugin of verifiers exports; see the package."""

from sandboxgym.integrations.verifiers.harness import TreeHarness
from sandboxgym.integrations.verifiers.tasks import SandboxTaskset

__all__ = ["SandboxTaskset", "TreeHarness"]
