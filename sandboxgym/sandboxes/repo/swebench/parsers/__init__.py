"""What a test runner prints, read as the status of each test.

Everything that is printed can be forged by the code under test. These parsers are what there is
where a run left nothing but its log; `verdicts.py` has the better way.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import TypeAlias

from sandboxgym.sandboxes.repo.swebench.parsers.pytest_logs import parse_pytest
from sandboxgym.sandboxes.repo.swebench.parsers.sympy_logs import parse_sympy
from sandboxgym.sandboxes.repo.swebench.parsers.unittest_logs import parse_unittest
from sandboxgym.sandboxes.repo.swebench.status import Results

Parser: TypeAlias = Callable[[str], Results]

_WITH_PYTEST = (
    "pytest astroid astropy flask marshmallow matplotlib pvlib pydicom pylint pyvista requests "
    "scikit seaborn sphinx sqlfluff xarray"
)

PARSERS: MappingProxyType[str, Parser] = MappingProxyType(
    {
        **{f"parse_log_{project}": parse_pytest for project in _WITH_PYTEST.split()},
        "parse_log_django": parse_unittest,
        "parse_log_unittest": parse_unittest,
        "parse_log_sympy": parse_sympy,
    }
)
"""By the name that rows give. All who use pytest print alike, whichever name their parser has."""
