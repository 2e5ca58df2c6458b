"""The contract: environments, snapshots, and what captures, restores and forks them."""
