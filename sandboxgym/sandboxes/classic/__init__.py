"""Environments that others wrote and that Gymnasium's world uses: their state APIs and adapters."""
