"""TRL: a sandbox as tools of `environment_factory`, and trees with credit per token for GRPO.

`tools` needs nothing but sandboxgym; `trainer` subclasses TRL's trainer, `rollouts` feeds it.
"""
