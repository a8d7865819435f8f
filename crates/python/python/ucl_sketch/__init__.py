"""Exact or near-exact counts per key of a stream in a few kilobytes.

>>> import ucl_sketch as ucl
>>> sketch = ucl.Sketch(memory="64KB")
>>> sketch.update(["to", "be", "or", "not", "to", "be"])
>>> sketch.estimate("be").count
2
"""

from importlib.metadata import version as _version

from ucl_sketch._native import Agent, Collector, Sketch, Table, UclError, count, evaluate, plan
from ucl_sketch._rows import AgentStatus, Count

__all__ = [
    "Agent",
    "AgentStatus",
    "Collector",
    "Count",
    "Sketch",
    "Table",
    "UclError",
    "count",
    "evaluate",
    "load",
    "plan",
]
__version__ = _version("ucl-sketch")

load = Sketch.load
