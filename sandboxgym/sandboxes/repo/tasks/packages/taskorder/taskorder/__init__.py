"""In which order to do things, and when."""

from taskorder.graph import CycleError, ancestors, find_cycle, levels, order, reduced
from taskorder.planning import Planned, critical_path, plan
from taskorder.recurring import business_day, next_run, parse_interval
from taskorder.workers import assign, balance

__all__ = [
    "CycleError",
    "Planned",
    "ancestors",
    "assign",
    "balance",
    "business_day",
    "critical_path",
    "find_cycle",
    "levels",
    "next_run",
    "order",
    "parse_interval",
    "plan",
    "reduced",
]
