"""Environments that can be forked: text worlds, and more to come."""
