"""Broken and hostile game files: each a clear error that names the file, soon and cheaply."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandboxgym.core.errors import GameFileError
from sandboxgym.sandboxes.text.engine import MAX_FILE_BYTES, Game
from tests.sandboxes.text import workshop


def refused(text, reason):
    with pytest.raises(GameFileError, match=reason) as caught:
        Game.from_json(text, name="some.tw-pddl")
    assert str(caught.value).startswith("some.tw-pddl: ")


def changed(part, old, new):
    original = getattr(workshop, part)
    assert old in original
    key = {"DOMAIN": "pddl_domain", "PROBLEM": "pddl_problem", "GRAMMAR": "grammar"}[part]
    return workshop.text(**{key: original.replace(old, new)})


# --- The file ---


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not valid JSON"),
        (workshop.text()[:-20], "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("1" * 10_000, "not valid JSON|must be a JSON object"),
        ('"\ud800"', "not valid JSON"),
        ("[]", "must be a JSON object"),
        ("null", "must be a JSON object"),
        ("{}", "no text 'pddl_domain'"),
        (workshop.text(pddl_domain=3), "no text 'pddl_domain'"),
        (workshop.text(pddl_problem=None), "no text 'pddl_problem'"),
        (workshop.text(grammar=["x"]), "no text 'grammar'"),
        (workshop.text(walkthrough="look"), "'walkthrough'"),
        (workshop.text(walkthrough=[1]), "'walkthrough'"),
        (workshop.text(walkthrough=["\ud800"]), "half a character"),
    ],
)
def test_a_file_of_another_form_is_refused(text, reason):
    refused(text, reason)


def test_a_file_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / "game.tw-pddl"
    path.write_bytes(b"\xff\xfe{}")
    with pytest.raises(GameFileError, match=r"game\.tw-pddl: the file is not UTF-8"):
        Game.load(path)


def test_a_huge_file_is_not_even_read(tmp_path):
    path = tmp_path / "game.tw-pddl"
    with path.open("wb") as file:
        os.truncate(file.fileno(), 1 << 40)  # takes no room on disk
    with pytest.raises(GameFileError, match=f"more than {MAX_FILE_BYTES} bytes"):
        Game.load(path)


# --- Names that nothing stands behind ---


@pytest.mark.parametrize(
    ("part", "old", "new", "reason"),
    [
        ("DOMAIN", "(holds ?a key1)", "(has ?a key1)", "unknown predicate 'has' in action 'openb"),
        ("DOMAIN", "(not (tidy))))", "(not (neat))))", "unknown predicate 'neat' in action 'take'"),
        ("PROBLEM", "(lit hammer)", "(bent hammer)", r"the fact \(bent hammer\) of \(:init"),
        ("PROBLEM", "(lit hammer)", "(lit anvil)", "unknown object 'anvil'"),
        ("PROBLEM", "(tidy)", "(neat)", "unknown predicate 'neat' in the goal"),
        ("PROBLEM", "hammer - tool", "hammer - weapon", "undeclared type 'weapon'"),
        ("GRAMMAR", "action go {", "action gone {", "does not know action 'go'"),
        ("GRAMMAR", "lit(t:item)", "bent(t:item)", "asks for 'bent'"),
        ("GRAMMAR", "not_open(b:box)", "not_ajar(b:box)", "asks for 'not_ajar'"),
        ("GRAMMAR", "lit(t:item)", "lit(t:item, b:box)", "asks for 'lit' with 2 arguments"),
        ("GRAMMAR", "lit(t:item)", "lit(t:weapon)", "t:weapon, which is no type"),
        ("GRAMMAR", "#flip#", "#flop#", "unknown symbol #flop#"),
        ("GRAMMAR", '"intro"', '"outro"', "unknown symbol #intro#"),
        ("GRAMMAR", "wipe {i}", "wipe {j}", "uses a variable 'j' where the variables are: a, i"),
    ],
)
def test_an_unknown_name_is_named(part, old, new, reason):
    refused(changed(part, old, new), reason)


# --- Code ---


@pytest.mark.parametrize(
    "code",
    [
        "__import__('os').system('touch /tmp/owned')",
        "open('/tmp/owned', 'w')",
        "b.__class__.__base__.__subclasses__()",
        "exec('raise SystemExit')",
        "self",
        "context",
    ],
)
@pytest.mark.parametrize("place", ["open {b}", "{b} (closed)", "zzz {a}"])
def test_code_in_a_template_is_refused(code, place):
    hole = place[place.index("{") : place.index("}") + 1]
    refused(changed("GRAMMAR", place, place.replace(hole, f"{{{code}}}")), "expression|variable")


# --- Endless expansion ---


def test_a_cyclic_grammar_is_refused():
    text = changed("GRAMMAR", '"light all."', '"#item2#"').replace(
        r"\"item\": [", r"\"item2\": [{\"rhs\": \"#task#\"}], \"item\": ["
    )
    refused(text, "the grammar is cyclic: intro -> task -> item2 -> task")


def chain(length, link):
    """Symbols that each expand to the next by `link`."""
    symbols = {f"s{i}": [{"rhs": link.format(f"#s{i + 1}#")}] for i in range(length)}
    document = {**symbols, f"s{length}": [{"rhs": ""}]}
    return f'grammar :: """{json.dumps(document)}""";'


def test_a_deep_grammar_is_refused():
    grammar = chain(1_000, "{}") + workshop.GRAMMAR.replace('"light all."', '"#s0#"')
    refused(workshop.text(grammar=grammar), "nest more than 50 deep")


def test_a_grammar_that_doubles_is_refused_where_it_is_told():
    doubling = chain(40, "{0}{0}")
    grammar = doubling + workshop.GRAMMAR.replace('"light all."', '"#s0#"')
    refused(workshop.text(grammar=grammar), "expands without end or nearly so")

    grammar = doubling + workshop.GRAMMAR.replace('"done"', '"#s0#"')
    position = Game.from_json(workshop.text(grammar=grammar), name="some.tw-pddl").start()
    for command in position.plan():
        if command == "clean up":
            with pytest.raises(GameFileError, match=r"^some\.tw-pddl: the grammar expands"):
                position.act(command)
            break
        position.act(command)
    assert "clean up" in position.admissible_commands


def test_a_query_that_joins_everything_with_everything_is_refused():
    names = "abcdefgh"
    query = " & ".join(f"seen({name}:object)" for name in names)
    grammar = workshop.GRAMMAR.replace('"done"', f'"[{{a.name | {query}}}]"').replace(
        '"intro": [{', f'"intro": [{{"rhs": "[{{a.name | {query}}}]"}}, {{'
    )
    things = " ".join(f"t{i}" for i in range(300))
    problem = workshop.PROBLEM.replace("hammer - tool", f"{things} hammer - tool").replace(
        "(:init", "(:init " + " ".join(f"(seen {thing})" for thing in things.split())
    )
    refused(workshop.text(grammar=grammar, pddl_problem=problem), "expands without end")


# --- Too much of everything ---


def actions(parameters, precondition="()", effect="(tidy)"):
    return changed(
        "DOMAIN",
        "(:action rest\n   :parameters (?a - agent)\n   :precondition (not (rested ?a))",
        f"(:action extra :parameters {parameters} :precondition {precondition} :effect {effect})"
        "(:action rest\n   :parameters (?a - agent)\n   :precondition (not (rested ?a))",
    ).replace("action ghost", "action extra")


def many_objects(text, count):
    content = json.loads(text)
    names = " ".join(f"t{i}" for i in range(count))
    content["pddl_problem"] = content["pddl_problem"].replace(
        "hammer - tool", f"{names} hammer - tool"
    )
    return json.dumps(content)


EXPLOSIONS = {
    "objects": (many_objects(workshop.text(), 200_000), "objects, more than 5000"),
    "parameters": (
        many_objects(actions("(?a ?b ?c ?d ?e ?f)"), 300).replace("#nowhere#", ""),
        "too many combinations",
    ),
    "quantified effects": (
        many_objects(actions("()", "()", "(forall (?a ?b ?c - item) (seen ?a))"), 300),
        "too many combinations",
    ),
    "quantified conditions": (
        many_objects(actions("()", "(forall (?a ?b ?c - item) (or (lit ?a) (lit ?b)))"), 300),
        "too many combinations",
    ),
    "alternatives": (
        actions("(?b - box)", f"(and {'(or (open ?b) (lit ?b)) ' * 20})"),
        "more than 500 cases",
    ),
    "conjuncts": (
        actions("(?b - box)", f"(and {'(open ?b) ' * 50_000})"),
        "more than 200 literals",
    ),
    "ways to win": (
        changed("PROBLEM", "(tidy)", f"(exists ({' '.join(f'?x{i}' for i in range(9))}) (tidy))"),
        "too many combinations",
    ),
    "nesting": (changed("PROBLEM", "(tidy)", f"{'(not ' * 5_000}(tidy){')' * 5_000}"), "64 levels"),
    "types": (
        changed("DOMAIN", "(:types", f"(:types {' '.join(f't{i}' for i in range(600))} - object"),
        "more than 500",
    ),
    "actions over facts": (
        many_objects(actions("(?x ?y)", "()", "(and (dusty ?x) (shiny ?y))"), 600),
        "too many combinations|ground actions over",
    ),
}


@pytest.mark.parametrize("what", EXPLOSIONS)
def test_too_much_is_refused(what):
    refused(*EXPLOSIONS[what])


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (700 << 20, 700 << 20))
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
from sandboxgym.core.errors import GameFileError
from sandboxgym.sandboxes.text.engine import Game
from tests.sandboxes.text.test_engine_hostile import EXPLOSIONS
for text, _ in EXPLOSIONS.values():
    try:
        Game.from_json(text)
    except GameFileError:
        print("refused")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory and time are Linux's")
def test_all_that_is_refused_within_bounded_memory_and_time():
    done = subprocess.run(
        [sys.executable, "-c", LIMITED],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "OPENBLAS_NUM_THREADS": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["refused"] * len(EXPLOSIONS), done.stderr[-2000:]


# --- Anything at all ---

scraps = st.text(max_size=30) | st.sampled_from(
    ["(", ")", "{", "}", "[", "]", "#", '"', ";", "&", "|", "not", "?x", "object", "\\u0000", "&&"]
)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(["DOMAIN", "PROBLEM", "GRAMMAR"]),
    st.floats(0, 1),
    st.integers(0, 30),
    scraps,
    st.randoms(use_true_random=False),
)
def test_a_damaged_game_plays_or_is_refused(part, where, length, scrap, dice):
    original = getattr(workshop, part)
    start = int(where * len(original))
    key = {"DOMAIN": "pddl_domain", "PROBLEM": "pddl_problem", "GRAMMAR": "grammar"}[part]
    damaged = original[:start] + scrap + original[start + length :]
    with suppress(GameFileError):
        position = Game.from_json(workshop.text(**{key: damaged})).start()
        for _ in range(10):
            commands = position.admissible_commands
            position.act(dice.choice(commands) if commands else "look")
            assert position.won in (True, False)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=10,
)


@given(
    st.dictionaries(
        st.sampled_from(["pddl_domain", "pddl_problem", "grammar", "walkthrough"]), json_values
    )
)
def test_any_json_is_refused_or_plays(content):
    with suppress(GameFileError):
        Game.from_json(json.dumps(content))
    with suppress(GameFileError):
        Game.from_json(workshop.text(**content))
