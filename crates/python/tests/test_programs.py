"""Random programs against `Counter`."""

from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ucl_sketch as ucl

MODES = ["exact", "exact", "delta", "em", "cm"]

# Few and small keys: they meet in a sketch of 4KB, and in the counters of each other.
KEYS: dict[str, st.SearchStrategy[Any]] = {
    "int": st.integers(-300, 300),
    "str": st.text("ab/é", max_size=20),
    "bytes": st.binary(max_size=20),
    "pair": st.tuples(st.integers(0, 30), st.text("ab", max_size=4)),
}


def column(kind: str) -> st.SearchStrategy[tuple[list[Any], str]]:
    forms = ["list", "arrow", "dictionary"] if kind in ("int", "str", "bytes") else ["list"]
    return st.tuples(st.lists(KEYS[kind], max_size=300), st.sampled_from(forms + (["numpy"] if kind == "int" else [])))


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, str, list[Any]]:
    kind = draw(st.sampled_from(sorted(KEYS)))
    sketch = st.integers(0, 2)
    step = st.one_of(
        st.tuples(st.just("update"), sketch, column(kind), st.integers(0, 3)),
        st.tuples(st.just("merge"), sketch, sketch),
        st.tuples(st.sampled_from(["pickle", "save", "copy", "cut"]), sketch),
    )
    return draw(st.sampled_from(MODES)), kind, draw(st.lists(step, min_size=1, max_size=12))


def as_column(values: list[Any], form: str, kind: str) -> Any:
    match form:
        case "arrow" | "dictionary":
            types = {"int": pa.int64(), "str": pa.string(), "bytes": pa.binary()}
            array = pa.array(values, types[kind])
            return array if form == "arrow" else array.dictionary_encode()
        case "numpy":
            return np.array(values, "int64")
    return values


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs") / "sketch.ucl"


@given(program=programs())
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_programs(file: Path, program: tuple[str, str, list[Any]]) -> None:
    mode, kind, steps = program
    sketches = [ucl.Sketch("4KB", mode=mode, seed=7, interval=100 if mode == "delta" else None) for _ in range(3)]
    truths = [Counter[Any]() for _ in range(3)]
    for step in steps:
        at = step[1]
        match step[0]:
            case "update":
                (values, form), weight = step[2], step[3]
                weights = [weight] * len(values) if weight != 1 else None
                sketches[at].update(as_column(values, form, kind), weights=weights)
                for value in values:
                    truths[at][value] += weight
            case "merge":
                sketches[at].merge(sketches[step[2]])
                truths[at] = truths[at] + truths[step[2]]
            case "pickle":
                sketches[at] = pickle.loads(pickle.dumps(sketches[at]))
            case "save":
                sketches[at].save(file)
                sketches[at] = ucl.load(file)
            case "copy":
                sketches[at] = sketches[at].copy()
            case "cut":
                sketches[at].cut()
    for sketch, truth in zip(sketches, truths):
        truth = +truth
        assert sketch.weight == truth.total()
        for row in sketch.top():
            assert row.lower <= truth[row.key] <= row.upper, row
            if mode == "exact":
                assert row.exact and row.count == truth[row.key], row
        keys = sorted(truth)
        if mode == "exact":
            assert {row.key for row in sketch.top()} == set(keys)
        for row in sketch.estimate(keys) if keys else []:
            assert row.lower <= truth[row.key] <= row.upper, row
            assert row.lower <= row.count <= row.upper, row
