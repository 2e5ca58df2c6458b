"""Run by a Python that has `swebench` 5: what it makes of logs, as JSON from stdin to stdout.

Importing it takes seconds and pulls in much that has nothing to do with it, hence a process.
"""

import json
import sys

from swebench.harness.constants import EvalType
from swebench.harness.grading import get_eval_tests_report, get_resolution_status
from swebench.harness.log_parsers import PARSER_REGISTRY


def main():
    answers = []
    for question in json.load(sys.stdin):
        statuses = PARSER_REGISTRY[question["parser"]](question["log"], None)
        gold = {
            "FAIL_TO_PASS": question["fail_to_pass"],
            "PASS_TO_PASS": question["pass_to_pass"],
        }
        report = get_eval_tests_report(statuses, gold, eval_type=EvalType.PASS_AND_FAIL)
        resolved = get_resolution_status(report) == "RESOLVED_FULL"
        answers.append({"statuses": statuses, "report": report, "resolved": resolved})
    json.dump(answers, sys.stdout)


main()
