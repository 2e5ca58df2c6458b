"""Learning from rollout trees: a thin reference implementation of Branching Policy Optimization.

`python -m sandboxgym_learners.train --help` trains. Read on in `tree` (the data), `advantages` (who
gets the credit), `branching` (where to fork), `collect`, `policy`, `learning` and `train`.
"""
