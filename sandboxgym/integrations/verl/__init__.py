"""verl: agent loops that play sandboxes, as trees where asked, and the estimator for them.

`loops` has the agent loops, `estimator` registers `adv_estimator=sandboxgym_nested_loo`.
"""
