"""Is the candidate faster? Pure statistics over the samples of ``raw.json``: data in, a Bench out."""

from .bench import FORMAT, OWNER, VERSION, Bench, CaseBench, Interval, Verdict, dump, parse
from .booking import BOOKING_KEYS, booking
from .clock import suspicions
from .crossover import Fit, fit, sign_p, t_quantile
from .noise import CaseFloor, Floor, floor
from .same import identical, identical_bench
from .table import Cell, Table, pair_values, refuse, tabulate
from .verdict import judge

__all__ = [
    "BOOKING_KEYS",
    "FORMAT",
    "OWNER",
    "VERSION",
    "Bench",
    "CaseBench",
    "CaseFloor",
    "Cell",
    "Fit",
    "Floor",
    "Interval",
    "Table",
    "Verdict",
    "booking",
    "dump",
    "fit",
    "floor",
    "identical",
    "identical_bench",
    "judge",
    "pair_values",
    "parse",
    "refuse",
    "sign_p",
    "suspicions",
    "t_quantile",
    "tabulate",
]
