"""A dialogue in characters, and a model that draws admissible commands: no library needed."""

from __future__ import annotations

import random

from sandboxgym.integrations.growth import Dialogue, Said


def letters(text: str) -> list[int]:
    return [ord(letter) for letter in text]


def text(tokens: list[int]) -> str:
    return "".join(map(chr, tokens))


def spelled() -> Dialogue:
    """What the agent reads ends with the commands, so that a model can read off what it may say."""

    def told(obs, info) -> list[int]:
        return letters(f"\n{obs}\n" + "|".join(info.get("admissible_commands", ["look"])) + "\n>")

    return Dialogue(opening=told, answer=told, action=lambda tokens: text(tokens).strip())


def drawn(prompts: list[list[int]], rng: random.Random) -> list[Said]:
    """A command of those that each prompt ends with."""
    answers = []
    for prompt in prompts:
        command = rng.choice(text(prompt).splitlines()[-2].split("|"))
        answers.append(Said(letters(command), [-1.0] * len(command)))
    return answers
