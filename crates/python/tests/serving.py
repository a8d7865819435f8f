"""A collector for tests."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple


class Server(NamedTuple):
    """A collector that runs."""

    url: str
    token: str
    process: subprocess.Popen[str]


def serve(program: Path, data: Path) -> Server:
    """Starts a collector on a port that is free."""
    process = subprocess.Popen(
        [program, "serve", "--listen", "127.0.0.1:0", "--data", data],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    url = process.stdout.readline().split()[2].rstrip(",")
    token = process.stdout.readline().split(": ")[-1].strip()
    return Server(url, token, process)


def stop(server: Server) -> None:
    """Stops the collector, and nothing else."""
    server.process.terminate()
    server.process.wait(timeout=30)
    assert server.process.stdout is not None
    server.process.stdout.close()
