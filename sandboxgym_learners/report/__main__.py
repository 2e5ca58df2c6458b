"""Write the report of some runs: `python -m sandboxgym_learners.report RUN_DIR... --out report`."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from sandboxgym.core.errors import SandboxGymError
from sandboxgym_learners.report import load_runs, write_report


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; gives its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m sandboxgym_learners.report", description=__doc__
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN_DIR")
    parser.add_argument("--out", type=Path, default=Path("report"), help="folder of index.html")
    options = parser.parse_args(arguments)
    given = sys.argv[1:] if arguments is None else arguments
    command = shlex.join(["python", "-m", "sandboxgym_learners.report", *given])
    try:
        path = write_report(load_runs(options.runs), options.out, command=command)
    except SandboxGymError as error:
        print(error, file=sys.stderr)
        return 1
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
