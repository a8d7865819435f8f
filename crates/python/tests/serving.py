"""A collector for tests."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

from processes import ended, eventually


class Server(NamedTuple):
    """A collector that runs."""

    url: str
    token: str
    process: subprocess.Popen[bytes]


def serve(program: Path, data: Path, listen: str = "127.0.0.1:0", token: str | None = None) -> Server:
    """Starts a collector, on a port that is free unless told. Only its first start shows a token."""
    data.mkdir(exist_ok=True)
    # Into files: nobody has to read them for the collector to go on, and the end of nobody closes them.
    said, complained = data / "stdout", data / "stderr"
    with said.open("wb") as out, complained.open("wb") as errors:
        command: list[str | Path] = [program, "serve", "--listen", listen, "--data", data / "served"]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=errors)

    def shown() -> tuple[str, str] | None:
        assert process.poll() is None, complained.read_text()
        lines = said.read_text().split("\n")
        address = [line.split()[2].rstrip(",") for line in lines[:-1] if line.startswith("Listening on ")]
        tokens = [line.split(": ")[-1] for line in lines[:-1] if line.startswith("Token ")]
        tokens += [] if token is None else [token]
        return (address[0], tokens[0]) if address and tokens else None

    try:
        return Server(*eventually(shown), process)
    except BaseException:
        process.kill()
        ended(process)
        raise


def stop(server: Server) -> None:
    """Stops the collector, and nothing else."""
    server.process.terminate()
    ended(server.process)
