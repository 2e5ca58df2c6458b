"""Sandboxes in the libraries that people train with. Each is thin, and imports its library itself.

`credit` and `growth` know no library: rollout trees in tokens, as rows that any of them can use.
"""
