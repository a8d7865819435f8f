"""Tables and sketches as text and as HTML."""

from __future__ import annotations

from html import escape
from typing import Any

from ucl_sketch._native import Sketch, Table

# More rows than this are left out of what is shown.
ROWS = 20
# Bars of the chart.
BARS = 10


def table_text(table: Table) -> str:
    """Returns the first rows, aligned."""
    names = table.column_names
    rows = [names, *([_text(value) for value in table[at]] for at in range(min(len(table), ROWS)))]
    widths = [max(len(row[at]) for row in rows) for at in range(len(names))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in rows]
    return "\n".join(lines + _left_out(table))


def table_html(table: Table) -> str:
    """Returns the first rows as an HTML table."""
    head = "".join(f"<th>{escape(name)}</th>" for name in table.column_names)
    body = ""
    for at in range(min(len(table), ROWS)):
        cells = "".join(f"<td>{escape(_text(value))}</td>" for value in table[at])
        body += f"<tr>{cells}</tr>"
    rest = "".join(f"<p>{line}</p>" for line in _left_out(table))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


def sketch_html(sketch: Sketch) -> str:
    """Returns a line of facts and a bar for each of the most frequent keys."""
    top = list(sketch.top(BARS))
    facts = escape(repr(sketch).strip("<>"))
    longest = max((row.upper for row in top), default=1) or 1
    height = 20 * len(top)
    bars = ""
    for at, row in enumerate(top):
        y, width = 20 * at, 300 * row.count / longest
        low, high = 300 * row.lower / longest, 300 * row.upper / longest
        shown = f"{row.count:,}" if row.exact else f"{row.count:,} ({row.lower:,} to {row.upper:,})"
        bars += (
            f'<text x="195" y="{y + 14}" text-anchor="end">{escape(_short(_text(row.key)))}</text>'
            f'<rect x="200" y="{y + 3}" width="{width:.1f}" height="14" fill="#4c78a8"/>'
            f'<line x1="{200 + low:.1f}" x2="{200 + high:.1f}" y1="{y + 10}" y2="{y + 10}" stroke="#333"/>'
            f'<text x="{205 + high:.1f}" y="{y + 14}">{shown}</text>'
        )
    return (
        f"<div><p>{facts}</p>"
        f'<svg width="760" height="{height}" font-family="sans-serif" font-size="12">{bars}</svg></div>'
    )


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)


def _short(text: str) -> str:
    return text if len(text) <= 28 else text[:27] + "…"


def _left_out(table: Table) -> list[str]:
    more = len(table) - ROWS
    return [f"... and {more:,} more rows"] if more > 0 else []
