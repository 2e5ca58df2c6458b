from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from sandboxgym.core.errors import DataNotFoundError, MissingDependencyError
from sandboxgym.sandboxes.repo.swebench.plan import Runner, plan_of, script_for_image
from sandboxgym.sandboxes.repo.swebench.rows import RowError, Setup, read_rows, row_of

RAW: dict[str, Any] = {
    "instance_id": "owner__thing-7",
    "repo": "owner/thing",
    "version": "1.2",
    "base_commit": "a" * 40,
    "problem_statement": "It is broken.\u2028It should not be.",
    "patch": "diff --git a/thing.py b/thing.py\n",
    "test_patch": "diff --git a/tests/test_thing.py b/tests/test_thing.py\n",
    "FAIL_TO_PASS": '["tests/test_thing.py::test_new"]',
    "PASS_TO_PASS": ["tests/test_thing.py::test_old"],
    "image": "owner/image:latest",
    "eval_script": "cd /testbed\n: '>>>>> Start Test Output'\npytest -rA tests/test_thing.py\n"
    ": '>>>>> End Test Output'\n",
    "log_parser": "parse_log_pytest",
    "eval_type": "pass_and_fail",
    "hints_text": "of no use here",
}


def test_a_row_has_its_fields_and_lists_in_both_forms() -> None:
    row = row_of(RAW)

    assert row.instance_id == "owner__thing-7"
    assert row.fail_to_pass == ("tests/test_thing.py::test_new",)
    assert row.pass_to_pass == ("tests/test_thing.py::test_old",)
    assert row.setup is None


def test_a_setup_is_read() -> None:
    setup = {"python": "3.11", "pins": ["a==1"], "environment": {"PYTHONPATH": "src"}}

    assert row_of({**RAW, "setup": setup}).setup == Setup("3.11", ("a==1",), {"PYTHONPATH": "src"})


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("instance_id", None, "missing"),
        ("instance_id", "../up", "form"),
        ("repo", "thing", "form"),
        ("base_commit", "HEAD; rm", "form"),
        ("problem_statement", 7, "not a string but int"),
        ("patch", None, "missing"),
        ("FAIL_TO_PASS", None, "missing"),
        ("FAIL_TO_PASS", "[", "no JSON"),
        ("FAIL_TO_PASS", "{}", "not a list"),
        ("FAIL_TO_PASS", [], "empty"),
        ("PASS_TO_PASS", [1], "no string: 1"),
        ("log_parser", "parse_log_nothing", "not known"),
        ("eval_type", "fail_only", "only 'pass_and_fail'"),
        ("setup", [], "not an object"),
        ("setup", {"python": "3.11", "pip": []}, r"unknown fields \['pip'\]"),
    ],
)
def test_a_malformed_row_is_named_with_its_field(field: str, value: Any, reason: str) -> None:
    name = "line 3" if field == "instance_id" and value is None else str(RAW["instance_id"])
    name = str(value) if field == "instance_id" and value else name

    with pytest.raises(RowError, match=reason) as caught:
        row_of({**RAW, field: value}, "line 3")

    assert str(caught.value).startswith(f"{name}: field '{field}'")


@pytest.mark.parametrize("setup", [{"python": 3.11}, {"python": "three"}, {"pins": []}])
def test_a_setup_needs_a_version_of_python(setup: Any) -> None:
    with pytest.raises(RowError, match="owner__thing-7: setup: field 'python'"):
        row_of({**RAW, "setup": setup})


def test_rows_are_read_from_every_kind_of_file(tmp_path: Path) -> None:
    line = json.dumps(RAW, ensure_ascii=False)
    (tmp_path / "rows.jsonl").write_text(f"{line}\n\n", encoding="utf-8")
    (tmp_path / "rows.json").write_text(f"[{line}]", encoding="utf-8")
    with gzip.open(tmp_path / "rows.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write(line)

    expected = [row_of(RAW)]
    for name in ("rows.jsonl", "rows.json", "rows.jsonl.gz"):
        assert read_rows(tmp_path / name) == expected


def test_rows_are_read_from_parquet(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.Table.from_pylist([RAW]), tmp_path / "rows.parquet")

    assert read_rows(tmp_path / "rows.parquet") == [row_of(RAW)]


def test_the_hub_needs_an_extra_and_says_which() -> None:
    try:
        import datasets  # noqa: F401
    except ImportError:
        with pytest.raises(MissingDependencyError, match=r"sandboxgym\[swebench\]"):
            read_rows("owner/data-set-that-is-no-file")
    else:
        pytest.skip("datasets is installed; without it there would be an error")


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.jsonl", b"{}\n{\n", "line 1: field"),
        ("a.jsonl", b"[1]\n", "line 1: a row is an object"),
        ("a.jsonl", b"{", "line 1: no JSON"),
        ("a.json", b"{}", "not a list"),
        ("a.jsonl", b"\xff", "cannot be read"),
        ("a.jsonl.gz", b"no gzip", "cannot be read"),
    ],
)
def test_a_broken_file_is_named_with_the_place(
    tmp_path: Path, name: str, content: bytes, reason: str
) -> None:
    (tmp_path / name).write_bytes(content)

    with pytest.raises(RowError, match=reason):
        read_rows(tmp_path / name)


def test_two_rows_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text(json.dumps([RAW, RAW]))

    with pytest.raises(RowError, match="owner__thing-7: field 'instance_id'"):
        read_rows(tmp_path / "rows.json")


def test_a_file_that_is_not_there_says_what_would_do(tmp_path: Path) -> None:
    with pytest.raises(DataNotFoundError, match="jsonl"):
        read_rows(tmp_path / "rows.jsonl")


def test_all_rows_of_verified_have_a_plan(shared_data: Path) -> None:
    rows = read_rows(shared_data / "swebench" / "verified.jsonl.gz")
    runners = {row.repo: plan_of(row).runner for row in rows}

    assert len(rows) == 500
    assert {row.repo for row in rows if row.log_parser == "parse_log_sympy"} == {"sympy/sympy"}
    assert runners.pop("django/django") is Runner.UNITTEST
    assert runners.pop("sympy/sympy") is Runner.SYMPY
    assert set(runners.values()) == {Runner.PYTEST}
    for row in rows:
        files = plan_of(row).files
        assert files
        assert not set(files) & {"/dev/null", ""}
        assert row.base_commit not in script_for_image(row)


def test_rows_of_the_old_format_come_to_the_same_as_the_new(shared_data: Path) -> None:
    new_fields = ("image", "eval_script", "log_parser", "eval_type")
    with gzip.open(shared_data / "swebench" / "verified.jsonl.gz", "rt", encoding="utf-8") as file:
        raws = [json.loads(line) for line in file]
    for raw in raws:
        new = row_of(raw)
        old = row_of({key: value for key, value in raw.items() if key not in new_fields})
        assert (old.image, old.log_parser) == (new.image, new.log_parser)
        old_plan, new_plan = plan_of(old), plan_of(new)
        assert (old_plan.runner, old_plan.arguments) == (new_plan.runner, new_plan.arguments)
        assert old_plan.files == new_plan.files
        assert old_plan.preparation == ()
