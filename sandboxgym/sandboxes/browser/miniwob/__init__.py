"""MiniWoB++: 134 small tasks on web pages, from the wheel `miniwob`, as forkable environments.

`env.py` is the environment, `tasks.py` knows the tasks, `site.py` serves their pages, `policy.py`
plays at random.
"""
