"""Exact or near-exact counts per key of a stream in a few kilobytes.

>>> import ucl_sketch as ucl
>>> sketch = ucl.Sketch(memory="64KB")
>>> sketch.update(["to", "be", "or", "not", "to", "be"])
>>> sketch.estimate("be").count
2
"""

from ucl_sketch._native import Agent, Collector, Sketch, Table, UclError, __version__, count, evaluate, plan
from ucl_sketch._rows import AgentStatus, Count

__all__ = [
    "Agent",
    "AgentStatus",
    "Collector",
    "Count",
    "Sketch",
    "Table",
    "UclError",
    "__version__",
    "count",
    "evaluate",
    "load",
    "plan",
]

load = Sketch.load
