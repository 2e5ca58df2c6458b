"""The dialogue of a chat model: observations are the user's messages, actions the assistant's."""

from __future__ import annotations

from typing import Any

from sandboxgym.integrations.growth import Dialogue

_BEFORE = [{"role": "user", "content": "."}, {"role": "assistant", "content": "."}]


def chat_dialogue(tokenizer: Any, opening: list[dict[str, str]] | None = None) -> Dialogue:
    """A dialogue by the chat template of a tokenizer of transformers.

    What follows an action is rendered after a short conversation of its own, and what the template
    puts in front of it is cut off. So no token of what came before is ever rendered again: the
    model goes on from exactly what it said.

    Args:
        tokenizer: Has a chat template that renders messages one after the other.
        opening: Messages before the first observation, such as a system prompt.
    """

    def rendered(messages: list[dict[str, str]], *, ask: bool) -> list[int]:
        ids = tokenizer.apply_chat_template(
            messages, add_generation_prompt=ask, tokenize=True, return_dict=True
        )["input_ids"]
        return list(ids)

    before = rendered(_BEFORE, ask=False)
    # The model says the end of its message itself; what the template adds behind that it does not.
    end = len(before) - before[::-1].index(tokenizer.eos_token_id)

    def user(seen: Any) -> dict[str, str]:
        return {"role": "user", "content": str(seen)}

    def first(seen: Any, info: dict[str, Any]) -> list[int]:
        return rendered([*(opening or []), user(seen)], ask=True)

    def answer(seen: Any, info: dict[str, Any]) -> list[int]:
        return rendered([*_BEFORE, user(seen)], ask=True)[end:]

    def action(said: list[int]) -> str:
        text: str = tokenizer.decode(said, skip_special_tokens=True)
        return text.strip()

    return Dialogue(opening=first, answer=answer, action=action)
