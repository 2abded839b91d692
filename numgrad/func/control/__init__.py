"""Control flow as functions: loops and branches that are differentiated, and can be recorded."""

from numgrad.func.control.branches import cond, switch
from numgrad.func.control.checkpoints import Binomial
from numgrad.func.control.loops import fori_loop, while_loop
from numgrad.func.control.scans import associative_scan, map, scan

__all__ = [
    "Binomial",
    "associative_scan",
    "cond",
    "fori_loop",
    "map",
    "scan",
    "switch",
    "while_loop",
]
