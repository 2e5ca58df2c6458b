"""RLlib: a pool of sandboxes as its vector environment, and a runner that keeps them in its state.

`vector` has the environments, `runner` the `EnvRunner`.
"""
