"""Repositories: a working tree with a shell, forkable, and SWE-bench on top."""
