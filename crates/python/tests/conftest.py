"""Options of the tests, and what several of them need."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from processes import PATIENCE
from serving import Server, serve, stop

ROOT = Path(__file__).parents[3]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--programs", type=int, default=60, help="random programs that each property test runs")
    parser.addoption("--spark", action="store_true", help="also run the examples for Spark, which need Java")


def pytest_configure(config: pytest.Config) -> None:
    # The same programs every time: what passes once passes everywhere.
    settings.register_profile(
        "ucl", max_examples=config.getoption("--programs"), derandomize=True, deadline=None, database=None
    )
    settings.load_profile("ucl")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--spark"):
        # Not skipped: a run without --spark does not have them.
        items[:] = [item for item in items if item.get_closest_marker("spark") is None]


@pytest.fixture(scope="session")
def samples() -> Path:
    return ROOT / "docs" / "samples"


@pytest.fixture(scope="session")
def program() -> Path:
    """The program `ucl`."""
    program = Path(os.environ.get("UCL_PROGRAM", ROOT / "target" / "debug" / "ucl"))
    assert program.exists(), f"{program} is not there: run `cargo build -p ucl-cli` first"
    return program


@pytest.fixture(scope="session")
def command_line(program: Path) -> Callable[..., str]:
    """Runs the program `ucl`."""

    def run(*arguments: str | Path) -> str:
        done = subprocess.run([program, *arguments], check=True, capture_output=True, text=True, timeout=PATIENCE)
        return done.stdout

    return run


@pytest.fixture(scope="session")
def server(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A collector that runs."""
    started = serve(program, tmp_path_factory.mktemp("data"))
    yield started
    stop(started)
