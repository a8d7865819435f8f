"""The rows of answers."""

from typing import Any, NamedTuple


class Count(NamedTuple):
    """A key with its count, and the range that holds the true count."""

    key: Any
    """The key: `None` for nulls, and for a key whose name never arrived."""
    count: int  # type: ignore[assignment]  # a tuple has a method of this name
    """The estimated count."""
    lower: int
    """The true count is at least this."""
    upper: int
    """The true count is at most this."""
    likely_lower: int
    """The true count is at least this with high probability."""
    likely_upper: int
    """The true count is at most this with high probability."""
    exact: bool
    """Whether the count is certain."""
