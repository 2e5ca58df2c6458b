"""When to give up: training that has left the numbers, or a policy that has stopped exploring."""

from __future__ import annotations

from typing import Any

from sandboxgym.core.errors import SandboxGymError
from sandboxgym_learners.config import StopConfig


class DivergenceError(SandboxGymError, ArithmeticError):
    """Training will not come back from here by itself; the message says what to change."""


class EntropyWatch:
    """Raises once the policy has been certain, and wrong, for a number of updates in a row."""

    def __init__(self, config: StopConfig) -> None:
        self.config = config
        self._certain = 0

    def end_update(self, *, entropy: float | None, success: float | None) -> None:
        """Take in the mean entropy of a decision and the success of an update.

        Raises:
            DivergenceError: The policy does the same every time, and that does not solve the tasks.
        """
        config = self.config
        if entropy is None or success is None:
            return
        collapsed = entropy < config.least_entropy and success < config.solved
        self._certain = self._certain + 1 if collapsed else 0
        if self._certain >= config.patience:
            raise DivergenceError(
                f"the policy has become certain (mean entropy below {config.least_entropy:g} nats "
                f"for {self._certain} updates) and solves {success:.0%}: the episodes of a task "
                "are all the same, so nothing more can be learnt from them. Start again with an "
                "entropy bonus (--learning.entropy 0.01), a lower --learning.rate or a "
                "--learning.kl; the best policy so far is in best/. "
                "--stop.least-entropy 0 goes on regardless"
            )

    def state_dict(self) -> dict[str, Any]:
        """All that changes from update to update, as plain data for a checkpoint."""
        return {"certain": self._certain}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint that `state_dict` wrote."""
        self._certain = state["certain"]
