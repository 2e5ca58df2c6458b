"""The account of a choice: which mechanism an environment forks by, and why not by another."""

from __future__ import annotations

from dataclasses import dataclass

from sandboxgym.core.snapshot import Fidelity, Mechanism


@dataclass(frozen=True)
class Rejection:
    """A mechanism that was not taken, and the reason."""

    mechanism: Mechanism
    reason: str


@dataclass(frozen=True)
class Choice:
    """How an environment forks. Print it.

    Attributes:
        environment: What was made forkable.
        mechanism: The mechanism that was taken.
        why: What speaks for it.
        fidelity: What its snapshots capture, and how well.
        rejected: What would have been better and is not possible, and why.
    """

    environment: str
    mechanism: Mechanism
    why: str
    fidelity: Fidelity
    rejected: tuple[Rejection, ...] = ()

    def __str__(self) -> str:
        """Several lines: the choice, what it is worth, and what was rejected."""
        lines = [
            f"{self.environment} forks by {self.mechanism}: {self.why}",
            f"  {_in_words(self.fidelity)}",
        ]
        return "\n".join(lines + account(self.rejected))


def account(rejected: tuple[Rejection, ...]) -> list[str]:
    """A line for each mechanism that was rejected."""
    return [f"  not by {each.mechanism}: {each.reason}" for each in rejected]


def _in_words(fidelity: Fidelity) -> str:
    return ", ".join(
        (
            f"captures {' '.join(sorted(fidelity.scope))}",
            "portable" if fidelity.portable else "not portable: restored in this process only",
            "exact" if fidelity.exact else "best effort",
            f"restores at a cost {fidelity.cost}",
        )
    )
