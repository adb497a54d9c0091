"""A release: the data, its promise and its manifest, the rule which columns leave, and the folder it is written to."""

from queryveil.release.columns import MIN_KEY_BYTES, ColumnPolicy, ColumnReport, Ids, TimeDetail, keyed
from queryveil.release.release import (
    FORMAT_VERSION,
    MANIFEST,
    SEEDED_NOISE,
    Counts,
    DataFile,
    Manifest,
    Noise,
    Part,
    Release,
    check_target,
    read_release,
    sum_of_parts,
    versions,
)

__all__ = [
    "FORMAT_VERSION",
    "MANIFEST",
    "MIN_KEY_BYTES",
    "SEEDED_NOISE",
    "ColumnPolicy",
    "ColumnReport",
    "Counts",
    "DataFile",
    "Ids",
    "Manifest",
    "Noise",
    "Part",
    "Release",
    "TimeDetail",
    "check_target",
    "keyed",
    "read_release",
    "sum_of_parts",
    "versions",
]
