"""The embedded backend: bubblewrap over layered overlays, without a daemon."""
