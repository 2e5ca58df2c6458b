"""Stable-Baselines3: a pool of sandboxes as its `VecEnv`, whose episodes may begin at snapshots."""
