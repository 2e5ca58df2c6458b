"""Fork an environment by forking the process that it lives in.

    owner (the user's program)          nursery (inherits and reaps all, watches the owner)
      env.py        ProcessEnv            nursery.py      its program
      family.py     what forks share      worker.py       the program of workers and templates
      templates.py  held moments, limits    scratch.py      private temporary files
      handles.py    one for each process    guard.py        threads, children, shared memory
      making.py     what is to be built     descriptors.py  open files
      failure.py    exceptions as data      writes.py       files changed elsewhere
      wire.py       messages                linux.py        system calls

A worker is a process with an environment in it, and one connection to the owner. Asked to fork, it
becomes two, and the new one has a connection of its own. A template is a worker that is asked for
nothing but to fork: it stays as it was, and each of its forks goes on as a live worker.
"""

from sandboxgym.mechanisms.process.env import ProcessEnv

__all__ = ["ProcessEnv"]
