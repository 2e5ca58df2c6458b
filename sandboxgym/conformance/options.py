"""How the suite is run: the same choices for Python, the command line and pytest."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sandboxgym.conformance.check import Check
from sandboxgym.conformance.checks import CHECKS, RECORDING
from sandboxgym.conformance.policies import Policy, load_policy, random_policy
from sandboxgym.core.errors import SandboxGymError

DEFAULT_DEPTH = 12
DEFAULT_SEEDS = (0, 1, 2)
DEFAULT_CALL_TIMEOUT = 120.0


class OptionError(SandboxGymError, ValueError):
    """The suite cannot be run in the way that was asked for."""


@dataclass(frozen=True)
class Options:
    """How the suite is run.

    Attributes:
        seeds: Seeds of the episodes that everything is compared with.
        depth: Their length.
        policy: Plays them: a function of observation, info, action space and generator, or
            "module:function". None takes admissible commands where the info lists them, else
            samples the action space.
        only: Numbers or names of the checks to run, with all that they build on. None is all.
        skip: Those not to run. What builds on them is run all the same.
        time_budget: Seconds for the whole suite. What has not ended by then is not run.
        memory_budget: Megabytes for all processes of the environment together. A check in which
            they take more is stopped, and not run.
        call_timeout: Seconds in which any one call on the environment has to return.
        isolated: Run the checks in a process of their own, which may hang or die. Without, a
            debugger reaches them, and there is no time limit on calls and no limit on memory.
    """

    seeds: Sequence[int] = DEFAULT_SEEDS
    depth: int = DEFAULT_DEPTH
    policy: Policy | str | None = None
    only: Iterable[str | int] | None = None
    skip: Iterable[str | int] = ()
    time_budget: float | None = None
    memory_budget: float | None = None
    call_timeout: float = DEFAULT_CALL_TIMEOUT
    isolated: bool = True

    def __post_init__(self) -> None:
        """Refuse what makes no sense.

        Raises:
            OptionError: A value is out of range, or names no check.
            PolicyNotFoundError: There is no such policy.
        """
        object.__setattr__(self, "seeds", tuple(self.seeds))
        if not self.seeds:
            raise OptionError("the suite needs at least one seed")
        if not all(type(seed) is int and seed >= 0 for seed in self.seeds):
            raise OptionError(f"seeds are integers from 0 on; got {list(self.seeds)}")
        if type(self.depth) is not int or self.depth < 1:
            raise OptionError(f"the depth is a number of steps, at least 1; got {self.depth!r}")
        for name in ("time_budget", "memory_budget", "call_timeout"):
            value = getattr(self, name)
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise OptionError(f"{name} is a number above 0; got {value!r}")
        only = None if self.only is None else frozenset(map(number_of, self.only))
        skip = frozenset(map(number_of, self.skip))
        if only is not None and not only - skip:
            raise OptionError("no check is left to run: `only` names none that `skip` does not")
        if RECORDING in skip:
            raise OptionError("check 00 records the episodes that all others need; keep it")
        object.__setattr__(self, "only", only)
        object.__setattr__(self, "skip", skip)
        if isinstance(self.policy, str):
            object.__setattr__(self, "policy", load_policy(self.policy))

    @property
    def player(self) -> Policy:
        """The policy."""
        assert not isinstance(self.policy, str)
        return self.policy or random_policy

    def checks(self) -> list[Check]:
        """The checks to be reported on, in order: those asked for, and what they build on."""
        if self.only is None:
            return list(CHECKS)
        wanted = set(self.only)
        for check in reversed(CHECKS):  # a check builds on earlier ones
            if check.number in wanted:
                wanted |= set(check.needs)
        return [check for check in CHECKS if check.number in wanted]


def number_of(name: str | int) -> str:
    """The number of the check that a number, "06", "6", "no-leaks" or a full name stands for.

    Raises:
        OptionError: There is no such check; the message names similar ones.
    """
    text = str(name).strip()
    if re.fullmatch(r"\d+", text):
        text = text.zfill(2)
    for check in CHECKS:
        if text in (check.number, check.name, check.name.partition("-")[2]):
            return check.number
    names = [check.name for check in CHECKS]
    short = [known.partition("-")[2] for known in names]
    similar = difflib.get_close_matches(text, names + short, n=1, cutoff=0.5)
    hint = f"did you mean {similar[0]!r}?" if similar else f"there are 00 to {CHECKS[-1].number}"
    raise OptionError(f"there is no check {name!r}: {hint}")
