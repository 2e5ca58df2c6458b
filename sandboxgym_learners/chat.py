"""How a chat model is asked for an action, and what of its answer is the action.

The model reads a system message that says how to answer, an exchange that shows it, and one user
message: the task, what was done lately and what is seen now. It answers with a thought and an
action. The action goes to the environment as it is, however senseless; what that costs is the
environment's own affair.

A small model does not do what it is only told: without the example, SmolLM2-135M answered 2 of 96
times in this form, and 16 of 32 times with it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from sandboxgym_learners.policy import PolicyError

COMMAND = (
    "You act in a world of text, one action at a time, to fulfil a task. First think in one short "
    "sentence, then choose an action. Answer in two lines and with nothing else:\n"
    "Thought: what to do next and why\n"
    "Action: the action, as the world expects it"
)
SHELL = (
    "You work in a shell on a repository, one command at a time, to resolve a report. First think "
    "in one short sentence, then give a command. It may have several lines. When the work is done, "
    "the command is: submit\n"
    "Answer in this form and with nothing else:\n"
    "Thought: what to do next and why\n"
    "Action:\n```\nthe command\n```"
)
BROWSER = (
    "You use a web page, one action at a time, to fulfil a task. Elements are called by their "
    "numbers in brackets. Actions are click('12'), fill('12', 'text'), press('12', 'Enter') and "
    "the like. First think in one short sentence, then act. Answer in two lines and with nothing "
    "else:\n"
    "Thought: what to do next and why\n"
    "Action: the action"
)
SYSTEM = {"command": COMMAND, "shell": SHELL, "browser": BROWSER}
Style = Literal["command", "shell", "browser"]


class Example(NamedTuple):
    """A prompt and an answer to it, as they stand in a chat before the real prompt."""

    prompt: str
    answer: str


EXAMPLE = {
    "command": Example(
        "Task: put the cup on table 2\nSteps taken: 0\nYou see: a cup 1 and a table 2.\n"
        "You can: look | take cup 1\nAction:",
        "Thought: I need the cup first.\nAction: take cup 1",
    ),
    "shell": Example(
        "Task: The program greets twice.\nSteps taken: 0\n"
        "You see: A shell in the repository.\nAction:",
        "Thought: I look for what greets.\nAction:\n```\ngrep -rn greet .\n```",
    ),
    "browser": Example(
        "Task: Press OK.\nSteps taken: 0\nYou see: [3] button 'OK'\nAction:",
        "Thought: The button has the number 3.\nAction: click('3')",
    ),
}

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""ChatML, for a tokenizer that comes without a template of its own."""

_ACTION = re.compile(r"action\s*:[ \t]*", re.IGNORECASE)
_FENCE = re.compile(r"\s*```[a-z]*[ \t]*\n(.*?)(?:\n```|```|\Z)", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_GAP = "\n[...]\n"


def action_in(text: str) -> str:
    """The action of an answer: what follows the last "Action:", to the end of the line.

    Right after it, a block between three backquotes may hold several lines. An answer without
    "Action:" is malformed, and an action as a whole. Control characters, which no environment
    takes, are left out.
    """
    clean = _CONTROL.sub("", text)
    found = list(_ACTION.finditer(clean))
    if not found:
        return clean.strip()
    rest = clean[found[-1].end() :]
    block = _FENCE.match(rest)
    if block is not None:
        return block.group(1).strip()
    return rest.strip().partition("\n")[0].strip()


def chat_tokens(
    tokenizer: Any, system: str, prompt: str, *, limit: int, example: Example | None = None
) -> list[int]:
    """The tokens in front of an answer, at most `limit` of them.

    Where there are more, the middle of the prompt is cut out: its beginning states the task, its
    end what is seen now, and what lies between is history.

    Raises:
        PolicyError: The limit is too small for the system message and the example alone.
    """
    opening = _opening(system, example)
    tokens = _applied(tokenizer, opening, prompt)
    if len(tokens) <= limit:
        return tokens
    pieces = tokenizer(prompt, add_special_tokens=False)["input_ids"]
    room = len(pieces) - (len(tokens) - limit)
    while room > 0:
        room -= 8  # for the gap, and for tokens that merge otherwise at the cuts
        head, tail = room // 3, room - room // 3
        kept = tokenizer.decode(pieces[:head]) + _GAP + tokenizer.decode(pieces[-tail:])
        tokens = _applied(tokenizer, opening, kept)
        if len(tokens) <= limit:
            return tokens
    raise PolicyError(
        f"a prompt of at most {limit} tokens has no room for the system message and the example: "
        "raise the limit (--policy.prompt-tokens)"
    )


def _opening(system: str, example: Example | None) -> list[dict[str, str]]:
    """The messages that are the same in front of every prompt."""
    opening = [{"role": "system", "content": system}]
    if example is not None:
        opening.append({"role": "user", "content": example.prompt})
        opening.append({"role": "assistant", "content": example.answer})
    return opening


def _applied(tokenizer: Any, opening: list[dict[str, str]], prompt: str) -> list[int]:
    text = tokenizer.apply_chat_template(
        [*opening, {"role": "user", "content": prompt}],
        chat_template=tokenizer.chat_template or TEMPLATE,
        tokenize=False,
        add_generation_prompt=True,
    )
    tokens: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    return tokens


def end_tokens(model: Any, tokenizer: Any) -> Sequence[int]:
    """The tokens at which an answer ends."""
    ends = {tokenizer.eos_token_id}
    for config in (model.config, getattr(model, "generation_config", None)):
        listed = getattr(config, "eos_token_id", None)
        ends.update(listed if isinstance(listed, list) else [listed])
    return sorted(end for end in ends if end is not None)
