"""What was seen and done before, put in front of an observation."""

from __future__ import annotations

from sandboxgym.sandboxes.webshop.texts import SEPARATOR


class History:
    """Remembers the last observations and actions of an episode.

    Args:
        num_obs: How many earlier observations to show.
        num_actions: How many earlier actions.
    """

    def __init__(self, num_obs: int, num_actions: int) -> None:
        if num_obs < 0 or num_actions < 0:
            raise ValueError(
                f"num_prev_obs={num_obs} and num_prev_actions={num_actions} should not be negative"
            )
        self.num_obs = num_obs
        self.num_actions = num_actions
        self.observations: list[str] = []  # that are still to be shown, newest first
        self.actions: list[str] = []

    def start(self, observation: str) -> None:
        """Begin an episode."""
        self.actions = []
        self.observations = [observation][: self.num_obs]

    def step(self, action: str, observation: str) -> str:
        """Remember an action and what came of it.

        Returns:
            The observation with the earlier ones before it, each followed by the action taken.
        """
        self.actions = [action, *self.actions][: self.num_actions]
        shown = [observation]
        for back in range(max(self.num_obs, self.num_actions)):
            shown += self.actions[back : back + 1]
            shown += self.observations[back : back + 1]
        self.observations = [observation, *self.observations][: self.num_obs]
        return SEPARATOR.join(reversed(shown))

    def continue_with(self, observations: list[str], actions: list[str]) -> None:
        """Go on where another history of such texts is."""
        self.observations, self.actions = list(observations), list(actions)
