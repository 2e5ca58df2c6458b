"""Chat templates: a dialogue goes on from what the model said, token by token."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("transformers", reason="needs a tokenizer: pip install 'sandboxgym[learners]'")
sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

import tiny

from sandboxgym.integrations.chat import chat_dialogue

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.fixture(scope="module")
def tokenizer():
    made = tiny.build_tokenizer(["go to the fridge", "you see a fridge", "user assistant system"])
    made.chat_template = TEMPLATE
    return made


def test_a_dialogue_is_what_the_template_renders(tokenizer):
    opening = [{"role": "system", "content": "Act."}]
    told = chat_dialogue(tokenizer, opening)
    said = tokenizer("go to the fridge" + tiny.END)["input_ids"]
    tokens = told.opening("You see a fridge.", {}) + said + told.answer("It is closed.", {})
    messages = [
        *opening,
        {"role": "user", "content": "You see a fridge."},
        {"role": "assistant", "content": "go to the fridge"},
        {"role": "user", "content": "It is closed."},
    ]
    whole = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    assert tokenizer.decode(tokens) == whole


def test_an_action_is_what_was_said_without_its_end(tokenizer):
    told = chat_dialogue(tokenizer)
    assert told.action(tokenizer(" look " + tiny.END)["input_ids"]) == "look"
