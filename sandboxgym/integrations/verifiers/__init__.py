"""verifiers: sandboxes as a taskset, and a harness whose rollout is a tree of messages.

verifiers finds plugins by the name of a top-level module. Write one, say `my_sandbox.py`, with

```
from sandboxgym.integrations.verifiers.plugin import *
```

and run `vf-eval my-sandbox --env.agent.harness.id my-sandbox`.
"""
