"""Text worlds: ALFWorld on an engine of our own, with real or generated games."""
