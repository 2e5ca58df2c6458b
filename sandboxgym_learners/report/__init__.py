"""A run directory, or several, as one page: `python -m sandboxgym_learners.report RUN_DIR...`."""

from sandboxgym_learners.report.load import Run, load_runs
from sandboxgym_learners.report.page import write_report

__all__ = ["Run", "load_runs", "write_report"]
