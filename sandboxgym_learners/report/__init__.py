"""A run directory, or several, as one page: `sandboxgym view RUN_DIR...`."""

from sandboxgym_learners.report.load import Run
from sandboxgym_learners.report.page import write_report
from sandboxgym_learners.report.runs import load_runs

__all__ = ["Run", "load_runs", "write_report"]
