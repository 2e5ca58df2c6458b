from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandboxgym.core.errors import GameFileError
from sandboxgym.sandboxes.text.pddl import (
    ALWAYS,
    And,
    Effect,
    Exists,
    ForAll,
    Literal,
    Or,
    Typed,
    parse_domain,
    parse_problem,
    read_expression,
)
from tests.sandboxes.text import workshop

HEAD = "(define (domain d) (:types box lid - thing thing)"
PREDICATES = "(:predicates (open ?b - box) (on ?l - lid ?b - box) (done))"


def domain(*sections: str):
    return parse_domain(f"{HEAD} {PREDICATES} {' '.join(sections)})")


def condition_of(text: str):
    action = f"(:action a :parameters (?b - box) :precondition {text} :effect (done))"
    return domain(action).actions[0].precondition


def effects_of(text: str):
    return domain(f"(:action a :parameters (?b - box) :effect {text})").actions[0].effects


def problem(text: str):
    return parse_problem(f"(define (problem p) (:domain d) {text})", domain())


def test_an_expression_is_lower_case_and_has_no_comments():
    assert read_expression("(A (b ?C?d) ; (\n E)", "test") == ["a", ["b", "?c", "?d"], "e"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "ends before its last"),
        ("(a (b)", "ends before its last"),
        ("(a))", "goes on after its last"),
        ("(a) b", "goes on after its last"),
        ("a", "must start with"),
        ("(é)", "non-ASCII"),
        ("(" * 65, "nested more than 64"),
        ("(" * 1_000_000, "nested more than 64"),
    ],
)
def test_a_malformed_expression_is_refused(text, reason):
    with pytest.raises(GameFileError, match=reason):
        read_expression(text, "test")


def test_types_know_all_their_ancestors():
    types = parse_domain("(define (domain d) (:types c - b b - a a))").supertypes
    assert types == {
        "object": frozenset(),
        "a": {"object"},
        "b": {"a", "object"},
        "c": {"a", "b", "object"},
    }


def test_types_under_each_other_end():
    types = parse_domain("(define (domain d) (:types a - b b - a))").supertypes
    assert types["a"] == {"b"}


def test_what_has_no_type_is_an_object():
    constants = parse_domain("(define (domain d) (:types a) (:constants x y - a z))").constants
    assert constants == (Typed("x", "a"), Typed("y", "a"), Typed("z", "object"))


def test_a_comma_belongs_to_the_type():
    condition = condition_of("(exists (?l - lid, ?m - lid) (on ?l ?b))")
    assert isinstance(condition, Exists)
    assert condition.parameters == (Typed("?l", "lid,"), Typed("?m", "lid"))


def test_negation_is_pushed_down_to_the_literals():
    is_open, not_done = Literal("open", ("?b",)), Literal("done", (), positive=False)
    assert condition_of("(not (or (not (open ?b)) (done)))") == And((is_open, not_done))
    assert condition_of("(not (and (not (open ?b)) (done)))") == Or((is_open, not_done))
    assert condition_of("(imply (done) (open ?b))") == Or((not_done, is_open))
    lids = (Typed("?l", "lid"),)
    off = Literal("on", ("?l", "?b"), positive=False)
    assert condition_of("(not (exists (?l - lid) (on ?l ?b)))") == ForAll(lids, off)
    assert condition_of("(not (forall (?l - lid) (on ?l ?b)))") == Exists(lids, off)


def test_an_empty_condition_always_holds():
    assert condition_of("()") == ALWAYS
    assert condition_of("(and)") == ALWAYS


def test_effects_are_taken_apart_and_costs_dropped():
    lids = (Typed("?l", "lid"),)
    assert effects_of(
        "(and (not (open ?b)) (forall (?l - lid) (when (on ?l ?b) (open ?b)))"
        " (increase (total-cost) 5))"
    ) == (
        Effect((), ALWAYS, Literal("open", ("?b",), positive=False)),
        Effect(lids, And((Literal("on", ("?l", "?b")),)), Literal("open", ("?b",))),
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("(shut ?b)", "unknown predicate 'shut' in action 'a'"),
        ("(open ?b ?b)", "has 2 arguments, but 'open' is declared with 1"),
        ("(open ?c)", "unknown variable '?c'"),
        ("(not)", "needs 1 parts"),
        ("(exists (?l) (done) (done))", "needs 2 parts"),
        ("(exists (l) (done))", "no variable"),
        ("(open (?b))", "expected plain names"),
        ("open", "in parentheses"),
        ("(exists (?l - (either box lid)) (done))", "expected plain names"),
    ],
)
def test_a_bad_condition_is_refused(text, reason):
    with pytest.raises(GameFileError, match=reason.replace("?", r"\?")):
        condition_of(text)


def test_equality_cannot_be_an_effect():
    with pytest.raises(GameFileError, match="unknown predicate '='"):
        effects_of("(= ?b ?b)")


@pytest.mark.parametrize(
    ("section", "reason"),
    [
        ("(:derived (done) (open b))", "does not know ':derived'"),
        ("(:action)", "malformed action"),
        ("(:action a :effect)", "malformed action"),
        ("(:action a :duration (1))", "unknown part ':duration'"),
        ("(:action a :parameters (?x ?x))", "name a variable twice"),
        ("(:action a) (:action a)", "names an action twice"),
        ("(:predicates (p x))", "no variable"),
        ("(:constants a -)", "a '-' without a type"),
        ("section", "in parentheses"),
        ("()", "has no name"),
        (f"(:action a :effect (and {'(done) ' * 201}))", "more than 200 effects"),
    ],
)
def test_a_bad_domain_is_refused(section, reason):
    with pytest.raises(GameFileError, match=reason):
        domain(section)


def test_a_problem_has_the_constants_of_its_domain():
    read = parse_problem(workshop.PROBLEM, parse_domain(workshop.DOMAIN))
    assert read.objects["key1"] == "tool"
    assert ("near", "box_bar_0", "room_bar_0") in read.init


def test_function_values_and_negated_facts_say_nothing_about_the_start():
    read = problem("(:objects x - box) (:init (= (cost) 3) (not (open x)) (done)) (:goal (done))")
    assert read.init == (("done",),)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("(:objects x - box)", "no \\(:goal"),
        ("(:goal (done) (done))", "must be one condition"),
        ("(:goal (gone))", "unknown predicate 'gone' in the goal"),
        ("(:goal (open ?x))", "unknown variable"),
        ("(:objects x - ship) (:goal (done))", "undeclared type 'ship'"),
        ("(:objects x - box x - lid) (:goal (done))", "two types"),
        ("(:init (gone)) (:goal (done))", "of no declared predicate"),
        ("(:init (done x)) (:goal (done))", "of no declared predicate"),
        ("(:init (open x)) (:goal (done))", "unknown object 'x'"),
        ("(:init done) (:goal (done))", "in parentheses"),
        ("(:init ()) (:goal (done))", "of no declared predicate"),
        ("(:nothing)", "does not know ':nothing'"),
        (f"(:objects {' '.join(map(str, range(5001)))}) (:goal (done))", "more than 5000"),
        (f"(:init {'(done) ' * 50001}) (:goal (done))", "more than 50000"),
    ],
)
def test_a_bad_problem_is_refused(text, reason):
    with pytest.raises(GameFileError, match=reason):
        problem(text)


WORDS = [*"()?-;=", " ", "\n", "define", "domain", "problem", ":types", ":predicates", ":action"]
WORDS += [":init", ":objects", ":goal", ":effect", ":precondition", ":parameters", "and", "or"]
WORDS += ["not", "forall", "exists", "when", "imply", "open", "?b", "box", "(define", "(:action"]
scraps = st.text() | st.lists(st.sampled_from(WORDS), max_size=60).map(" ".join)


@given(scraps)
def test_any_text_is_a_domain_or_a_game_file_error(text):
    for attempt in (text, f"(define {text})", f"{HEAD} {PREDICATES} (:action a {text}))"):
        with suppress(GameFileError):
            parse_domain(attempt)


@given(scraps)
def test_any_text_is_a_problem_or_a_game_file_error(text):
    for attempt in (text, f"(define {text})", f"(define (:objects {text}) (:goal {text}))"):
        with suppress(GameFileError):
            parse_problem(attempt, parse_domain(workshop.DOMAIN))


@given(st.integers(0, len(workshop.DOMAIN)), st.integers(0, 40), scraps)
def test_a_damaged_domain_is_a_domain_or_a_game_file_error(start, length, scrap):
    with suppress(GameFileError):
        parse_domain(workshop.DOMAIN[:start] + scrap + workshop.DOMAIN[start + length :])
