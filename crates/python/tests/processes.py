"""Processes for tests: every wait for one has an end."""

from __future__ import annotations

import select
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, TypeVar

# The longest that a test waits: nothing takes as long unless it hangs.
PATIENCE = 60.0
T = TypeVar("T")


def eventually(look: Callable[[], T | None]) -> T:
    """Looks until there is something to see, and returns it."""
    until = time.monotonic() + PATIENCE
    while (seen := look()) is None:
        assert time.monotonic() < until, f"nothing to see after {PATIENCE:.0f} seconds"
        time.sleep(0.01)
    return seen


def ended(process: subprocess.Popen[Any], within: float = PATIENCE) -> int:
    """Waits for the end of a process, which is killed if it is late. Returns its exit code."""
    try:
        return process.wait(timeout=within)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(timeout=PATIENCE)
        raise


def run(program: str) -> int:
    """Runs a Python program. Returns its exit code."""
    return ended(subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.DEVNULL))


def started(program: str) -> subprocess.Popen[bytes]:
    """Starts a Python program, and waits until it prints `ready`."""
    child = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert child.stdout is not None
    try:
        readable, _, _ = select.select([child.stdout], [], [], PATIENCE)
        assert readable, "the program printed nothing"
        assert child.stdout.readline() == b"ready\n"
    except BaseException:
        child.kill()
        ended(child)
        raise
    finally:
        child.stdout.close()
    return child
