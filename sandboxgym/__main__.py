"""`python -m sandboxgym` is the command `sandboxgym`."""

import sys

from sandboxgym.cli import main

sys.exit(main())
