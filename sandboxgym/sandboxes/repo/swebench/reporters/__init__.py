"""Programs that run inside of a sandbox, by the sandbox's Python: 3.5 and later.

`verdicts.py` sends their text in; nothing imports them. `supervisor.py` runs in a process of its
own and starts the tests in another, where the `main` of one of the `*_reporter.py` is given a
`Channel`. They are not in `sys.modules` there, where the code under test would find them at once.
"""
