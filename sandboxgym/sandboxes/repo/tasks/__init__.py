"""Bug-fix tasks: some that ship with the package, and a generator that makes more of them."""

from sandboxgym.sandboxes.repo.tasks.shipped import base_of_task, shipped_tasks

__all__ = ["base_of_task", "shipped_tasks"]
