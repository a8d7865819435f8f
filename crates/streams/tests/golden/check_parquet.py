"""Checks the Parquet files of this folder with a reader that is not ours.

Needs Python 3 with pyarrow (written with 26.0.1); run it in this folder: python3 check_parquet.py
After a change of the writer, store the files that the unit test of src/table.rs writes, and run this again.
"""

import pyarrow.parquet as pq


def check(name, key_type, first, second):
    table = pq.read_table(name)
    types = [key_type, "uint64", "uint64", "uint64", "string"]
    assert [str(field.type) for field in table.schema] == types, table.schema
    assert not any(field.nullable for field in table.schema)
    assert table.to_pylist() == [
        {"key": first, "estimate": 2**63, "lower": 2**62, "upper": 2**64 - 1 - 2**63, "source": "decoded"},
        {"key": second, "estimate": 0, "lower": 0, "upper": 2**64 - 1, "source": "decoded"},
    ], table.to_pylist()
    print(name, "is fine")


check("two_rows.parquet", "string", "grün", "")
check("two_rows_of_bytes.parquet", "binary", "grün".encode(), b"\xff\x00")
