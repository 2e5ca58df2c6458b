"""The XML that continuous integration systems read."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from sandboxgym.conformance import check_forkable
from sandboxgym.conformance.report import CheckResult, ConformanceReport
from tests.mutants.determinism import IgnoresTheSeedOfReset
from tests.mutants.restoring import ForgetsTheFuel

SUITE_ATTRIBUTES = {
    "id",
    "package",
    "name",
    "timestamp",
    "hostname",
    "tests",
    "failures",
    "errors",
    "skipped",
    "time",
}


def parsed(report):
    root = ET.fromstring(report.to_junit())
    [suite] = root
    return root, suite


@pytest.fixture(scope="module")
def report():
    return check_forkable(ForgetsTheFuel, only=["06", "07"])


def test_its_parts_are_those_of_the_schemas_in_their_order(report):
    root, suite = parsed(report)
    assert (root.tag, root.attrib, suite.tag) == ("testsuites", {}, "testsuite")
    assert set(suite.attrib) == SUITE_ATTRIBUTES
    tags = [child.tag for child in suite]
    assert tags == ["properties", *["testcase"] * len(report.results), "system-out", "system-err"]
    for case in suite.iter("testcase"):
        assert set(case.attrib) == {"classname", "name", "time"}
        assert len(case) <= 1


def test_it_counts_what_it_holds(report):
    _, suite = parsed(report)
    cases = list(suite.iter("testcase"))
    assert int(suite.get("tests")) == len(cases) == len(report.results)
    assert int(suite.get("failures")) == len(list(suite.iter("failure"))) == 1
    assert int(suite.get("skipped")) == len(list(suite.iter("skipped"))) == 1
    total = sum(float(case.get("time")) for case in cases)
    assert float(suite.get("time")) == pytest.approx(total, abs=0.001 * len(cases))


def test_a_failure_has_its_whole_report(report):
    _, suite = parsed(report)
    [failure] = suite.iter("failure")
    assert failure.get("message") == "restored to step 1, step 2"
    assert "sandboxgym check tests.mutants.restoring:ForgetsTheFuel --only 06" in failure.text
    [skipped] = suite.iter("skipped")
    assert skipped.get("message") == "needs 06-restored-continues-exactly, which failed"


def test_a_doubt_passes_and_is_told(report):
    _, suite = parsed(check_forkable(IgnoresTheSeedOfReset, only=["03"]))
    assert suite.get("failures") == "0"
    assert "warn  03-seeds-differ" in suite.find("system-err").text


def test_properties_say_what_was_checked_and_how(report):
    _, suite = parsed(report)
    properties = {p.get("name"): p.get("value") for p in suite.iter("property")}
    assert properties["seeds"] == "0, 1, 2"
    assert properties["mechanism"].startswith("mechanism native")
    assert "version of gymnasium" in properties


def test_what_xml_cannot_say_is_spelled_out():
    odd = "null \0, bell \a, half \ud800, snow \u2603, <tags> & ]]>"
    result = CheckResult("06-x", "why", "failed", message=odd, output=odd)
    report = ConformanceReport(odd, odd, [0], 1, {odd: odd}, [result])
    _, suite = parsed(report)
    message = suite.find("testcase/failure").get("message")
    assert message == "null \\x00, bell \\x07, half \\xd800, snow \u2603, <tags> & ]]>"
    report.to_junit().encode("utf-8")
