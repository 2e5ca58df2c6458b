"""A small calculator for formulas."""

from littlecalc.errors import CalcError
from littlecalc.evaluator import calculate, names_in
from littlecalc.printer import show
from littlecalc.reader import parse
from littlecalc.tokens import tokenize

__all__ = ["CalcError", "calculate", "names_in", "parse", "show", "tokenize"]
