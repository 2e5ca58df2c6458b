"""`python -m sandboxgym.cli`."""

import sys

from sandboxgym.cli import main

sys.exit(main())
