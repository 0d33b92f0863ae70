"""Is the candidate faster? Pure statistics over the samples of ``raw.json``: data in, a Bench out."""

from .bench import FORMAT, OWNER, VERSION, Bench, CaseBench, Interval, Verdict, dump, parse
from .booking import BOOKING_KEYS, booking, moved
from .clock import suspicions
from .crossover import Fit, fit, sign_p, t_quantile
from .fastest import Fastest, against_fastest
from .heat import cool
from .noise import CaseFloor, Floor, floor
from .physics import cold_bytes
from .resample import Gate, Pool, gate, pool_of
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
    "Fastest",
    "Fit",
    "Floor",
    "Gate",
    "Interval",
    "Pool",
    "Table",
    "Verdict",
    "against_fastest",
    "booking",
    "cold_bytes",
    "cool",
    "dump",
    "fit",
    "floor",
    "gate",
    "identical",
    "identical_bench",
    "judge",
    "moved",
    "pair_values",
    "parse",
    "pool_of",
    "refuse",
    "sign_p",
    "suspicions",
    "t_quantile",
    "tabulate",
]
