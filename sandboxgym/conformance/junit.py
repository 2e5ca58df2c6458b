"""A report as JUnit XML.

There is no standard, but two schemas that the readers of such files were written for: that of Ant's
tasks and that of Jenkins. What is written here fits both. So a test case has a failure or a reason
to be skipped and nothing else; doubts are in the output of the suite, beside the whole report.
"""

from __future__ import annotations

import re
import socket
from datetime import datetime, timezone
from xml.etree import ElementTree as ET

from sandboxgym.conformance.report import CheckResult, ConformanceReport

_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(report: ConformanceReport) -> str:
    """The XML of one suite with one test case for each check."""
    root = ET.Element("testsuites")
    suite = ET.SubElement(
        root,
        "testsuite",
        id="0",
        package="sandboxgym.conformance",
        name=_token(report.env),
        timestamp=_timestamp(report.started),
        hostname=socket.gethostname() or "localhost",
        tests=str(len(report.results)),
        failures=str(len(report.failures)),
        errors="0",
        skipped=str(len(report.not_run)),
        time=f"{report.seconds:.3f}",
    )
    properties = ET.SubElement(suite, "properties")
    for name, value in _facts(report).items():
        ET.SubElement(properties, "property", name=_token(name), value=_text(value))
    for result in report.results:
        _add_case(suite, report.env, result)
    ET.SubElement(suite, "system-out").text = _text(str(report))
    ET.SubElement(suite, "system-err").text = _text("\n".join(map(str, report.warnings)))
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _add_case(suite: ET.Element, env: str, result: CheckResult) -> None:
    case = ET.SubElement(
        suite,
        "testcase",
        classname=_token(f"sandboxgym.conformance.{env}"),
        name=_token(result.name),
        time=f"{result.seconds:.3f}",
    )
    if result.status == "failed":
        failure = ET.SubElement(
            case, "failure", type="ConformanceError", message=_text(result.message)
        )
        failure.text = _text(str(result))
    elif result.status == "not run":
        ET.SubElement(case, "skipped", message=_text(result.message))


def _facts(report: ConformanceReport) -> dict[str, str]:
    return {
        "mechanism": report.mechanism,
        "choice": report.choice,
        "seeds": ", ".join(map(str, report.seeds)),
        "depth": str(report.depth),
        **{f"version of {name}": version for name, version in report.versions.items()},
    }


def _timestamp(started: str) -> str:
    """A moment in UTC, without the zone, which one of the schemas does not take."""
    moment = datetime.fromisoformat(started) if started else datetime.now(timezone.utc)
    return moment.replace(tzinfo=None).isoformat(timespec="seconds")


def _text(text: str) -> str:
    """`text` with the characters spelled out that XML does not have."""
    return _NOT_IN_XML.sub(lambda match: f"\\x{ord(match.group()):02x}", text)


def _token(text: str) -> str:
    """`text` as one line, and not empty."""
    return " ".join(_text(text).split()) or "unknown"
