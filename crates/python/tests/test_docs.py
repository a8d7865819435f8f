"""Everything that the docs show is run."""

from __future__ import annotations

import doctest
import os
import re
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest
from serving import Server

import ucl_sketch as ucl

ROOT = Path(__file__).parents[3]
NOTEBOOKS = sorted((ROOT / "crates" / "python" / "notebooks").glob("*.ipynb"))


def test_docstrings() -> None:
    failed, tried = doctest.testmod(ucl)
    assert tried > 0 and failed == 0


@pytest.mark.parametrize("page", ["docs/python.md", "README.md", "crates/python/README.md"])
def test_pages(page: str, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert blocks, f"{page} has no examples"
    monkeypatch.chdir(tmp_path)
    # The blocks of a page are one program. These names are what its reader has.
    space: dict[str, Any] = {"__name__": "page", "url": server.url, "token": server.token}
    exec(PRELUDE, space)
    for number, block in enumerate(blocks):
        exec(compile(block, f"{page}, block {number + 1}", "exec"), space)


PRELUDE = f"""
import pandas
df = pandas.DataFrame({{"user_id": [7, 7, 3, 7, 3, 1], "page": list("abaacb"), "seconds": [3, 4, 5, 6, 7, 8]}})
log = {str(ROOT / "docs" / "samples" / "monday.log")!r}
"""


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks(path: Path, program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    assert not any(cell.get("outputs") for cell in notebook.cells), "notebooks are kept without outputs"
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()


def test_there_are_three_notebooks() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["choosing", "first_steps", "service"]
