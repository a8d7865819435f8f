"""What is wrong is named, and changes nothing."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import ucl_sketch as ucl


def sketch() -> ucl.Sketch:
    made = ucl.Sketch("16KB", seed=1)
    made.update([1, 2, 2])
    return made


@pytest.mark.parametrize(
    ("column", "options", "error", "words"),
    [
        (["a"], {}, TypeError, "the sketch counts int64 keys, and the column has str"),
        ([1, "a"], {}, TypeError, "row 1 is str, but the rows before are int"),
        ([1, 1.5], {}, TypeError, "row 1 is a float: keys are int, str"),
        ([object()], {}, TypeError, "row 0 is a object"),
        (np.array([1.5]), {}, TypeError, "columns of float64 are not counted"),
        (pa.array([1.5]), {}, TypeError, "columns of Float64 are not counted"),
        (np.array([[1]]), {}, ValueError, "a column has one dimension, not 2"),
        (np.array([1, 2**63], "uint64"), {}, ValueError, "row 1: the sketch counts int64, which 9223372036854775808"),
        ("text", {}, TypeError, "a single str is no column"),
        (7, {}, TypeError, "a single int is no column"),
        ({"a": 1}, {}, TypeError, "a dict is no column"),
        ([3], {"weights": [1, 2]}, ValueError, "2 weights for 1 keys"),
        ([3], {"weights": [-1]}, ValueError, "row 0: a weight is from 0"),
        ([3], {"weights": [1.5]}, TypeError, "row 0 is a float"),
        ([3], {"weights": np.array([1.5])}, TypeError, "columns of float64"),
        ([3, 3], {"weights": pa.array([1, None])}, ValueError, "the weight of row 1 is null"),
        ([3, 3], {"weights": [2**63 - 1, 1]}, ValueError, "would pass 2"),
        ([1, 3, None], {"null": "error"}, ValueError, "row 2 is null"),
        ([3], {"null": "drop"}, ValueError, "null is 'skip', 'count' or 'error', not 'drop'"),
    ],
)
def test_a_wrong_column_leaves_the_sketch_as_it_was(
    column: Any, options: dict[str, Any], error: type[Exception], words: str
) -> None:
    made = sketch()
    before = pickle.dumps(made)
    with pytest.raises(error) as raised:
        made.update(column, **options)
    assert words in str(raised.value)
    assert pickle.dumps(made) == before


def test_wrong_lengths_are_named() -> None:
    made = ucl.Sketch(keys="bytes4")
    made.add(b"1234")
    before = pickle.dumps(made)
    for column in ([b"1234", b"123"], np.array([b"12345"], "S5"), pa.array([b"1234", b"123"])):
        with pytest.raises(ValueError, match="bytes is none of bytes4"):
            made.update(column)
    text = ucl.Sketch(keys=str)
    with pytest.raises(ValueError, match="row 1: a key of 65536 bytes is longer than 65535"):
        text.update(["ok", "x" * 65_536])
    assert (pickle.dumps(made), text.weight) == (before, 0)


def test_a_first_column_that_is_wrong_fixes_no_type() -> None:
    made = ucl.Sketch()
    with pytest.raises(TypeError):
        made.update(["a", 1])
    assert made.keys is None
    made.update([1])
    assert made.keys == "int64"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"memory": "lots"}, "'lots' is not a size"),
        ({"memory": 10}, "is too small"),
        ({"mode": "magic"}, "there is no mode 'magic': the modes are"),
        ({"keys": "float"}, "'float' is no type of keys"),
        ({"keys": "bytes0"}, "'bytes0' is no type of keys"),
        ({"keys": ()}, "a tuple of no types"),
        ({"interval": 0, "mode": "delta"}, "an interval of 0 items never ends"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError) as raised:
        ucl.Sketch(**options)
    assert words in str(raised.value)


def test_merges_that_do_not_go_together() -> None:
    made, before = sketch(), pickle.dumps(sketch())
    with pytest.raises(ValueError, match="differ in seed"):
        other = ucl.Sketch("16KB", seed=2)
        other.update([1])
        made.merge(other)
    with pytest.raises(TypeError, match="the sketches count different keys: int64 and uint64"):
        other = ucl.Sketch("16KB", seed=1, keys="uint64")
        other.update([1])
        made.merge(other)
    with pytest.raises(TypeError):
        made.merge([1])  # type: ignore[arg-type]
    assert pickle.dumps(made) == before


def test_files_that_cannot_be_loaded(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="none.ucl"):
        ucl.load(tmp_path / "none.ucl")
    (tmp_path / "text").write_text("no sketch")
    with pytest.raises(ucl.UclError, match="not a UCL-sketch state file"):
        ucl.load(tmp_path / "text")
    path = tmp_path / "good.ucl"
    sketch().save(path)
    whole = path.read_bytes()
    (tmp_path / "short.ucl").write_bytes(whole[:-9])
    with pytest.raises(ucl.UclError, match="cut short"):
        ucl.load(tmp_path / "short.ucl")
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 1
    (tmp_path / "damaged.ucl").write_bytes(damaged)
    with pytest.raises(ucl.UclError, match="damaged"):
        ucl.load(tmp_path / "damaged.ucl")
    with pytest.raises(TypeError, match="which str keys are not"):
        ucl.load(path, keys="str")
    with pytest.raises(OSError):
        sketch().save(tmp_path / "no folder" / "x.ucl")
    with pytest.raises(FileNotFoundError):
        ucl.count(tmp_path / "none.log")


def test_epochs_that_are_not_kept() -> None:
    with pytest.raises(ValueError, match="no epochs are kept"):
        sketch().series(1)
    with pytest.raises(ValueError, match="no epochs are kept"):
        sketch().changes()
