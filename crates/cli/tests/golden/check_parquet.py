"""Checks two_rows.parquet with a reader that is not ours.

Needs Python 3 with pyarrow (written with 26.0.1); run it in this folder: python3 check_parquet.py
After a change of the writer, store the file that the unit test of src/count/parquet.rs writes, and run this again.
"""

import pyarrow.parquet as pq

table = pq.read_table("two_rows.parquet")
assert [str(field.type) for field in table.schema] == ["string", "uint64", "uint64", "uint64", "string"], table.schema
assert not any(field.nullable for field in table.schema)
assert table.to_pylist() == [
    {"key": "grün", "estimate": 2**63, "lower": 2**62, "upper": 2**64 - 1 - 2**63, "source": "decoded"},
    {"key": "", "estimate": 0, "lower": 0, "upper": 2**64 - 1, "source": "decoded"},
], table.to_pylist()
print("two_rows.parquet is fine")
