"""The conformance suite: find out whether an environment forks exactly.

>>> from sandboxgym.conformance import check_forkable
>>> report = check_forkable("sandboxgym/ALFWorld-v0", kwargs={"source": "synthetic"})
>>> report.raise_for_failures()

From the command line `sandboxgym check ID`, from pytest `ForkableContract`.
"""

from typing import TYPE_CHECKING, Any

from sandboxgym.conformance.options import OptionError, Options
from sandboxgym.conformance.policies import PolicyNotFoundError
from sandboxgym.conformance.report import CheckResult, ConformanceError, ConformanceReport
from sandboxgym.conformance.runner import check_forkable
from sandboxgym.conformance.source import EnvironmentNotFoundError

if TYPE_CHECKING:
    from sandboxgym.conformance.contract import ForkableContract

__all__ = [
    "CheckResult",
    "ConformanceError",
    "ConformanceReport",
    "EnvironmentNotFoundError",
    "ForkableContract",
    "OptionError",
    "Options",
    "PolicyNotFoundError",
    "check_forkable",
]


def __getattr__(name: str) -> Any:
    """Import `ForkableContract` only when it is asked for: it needs pytest."""
    if name == "ForkableContract":
        from sandboxgym.conformance.contract import ForkableContract

        return ForkableContract
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
