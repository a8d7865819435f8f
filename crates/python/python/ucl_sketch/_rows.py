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


class AgentStatus(NamedTuple):
    """How an agent is doing."""

    stream: str
    """Name of the stream."""
    incarnation: str
    """Life of the stream: a new one begins when counts were given up."""
    items: int
    """Items counted in this life."""
    epochs: int
    """Epochs ended in it."""
    waiting: int
    """Epochs that the collector does not have yet."""
    spool_bytes: int
    """Bytes on disk that they take."""
    queued: int
    """Items that wait in memory to be counted."""
    dropped: int
    """Items left out since the start, because the queue was full."""
    trouble: str | None
    """What is wrong, if anything is: with the collector, or the disk."""
