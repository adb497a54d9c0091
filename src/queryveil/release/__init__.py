"""A release: data, promise and manifest, the rule for released columns, and its folder."""

from queryveil.release.columns import (
    MIN_KEY_BYTES,
    ColumnPolicy,
    ColumnReport,
    Ids,
    TimeDetail,
    ids_per_window,
    keyed,
    people_of_windows,
    window_numbers,
)
from queryveil.release.contents import SIGNATURE, Contents
from queryveil.release.manifest import (
    MANIFEST,
    SEEDED_NOISE,
    Counts,
    DataFile,
    Manifest,
    Noise,
    Part,
    TextCounts,
    sizes,
    sum_of_parts,
    text_facts,
    versions,
)
from queryveil.release.release import Release, check_target, read_release, reserved

__all__ = [
    "MANIFEST",
    "MIN_KEY_BYTES",
    "SEEDED_NOISE",
    "SIGNATURE",
    "ColumnPolicy",
    "ColumnReport",
    "Contents",
    "Counts",
    "DataFile",
    "Ids",
    "Manifest",
    "Noise",
    "Part",
    "Release",
    "TextCounts",
    "TimeDetail",
    "check_target",
    "ids_per_window",
    "keyed",
    "people_of_windows",
    "read_release",
    "reserved",
    "sizes",
    "sum_of_parts",
    "text_facts",
    "versions",
    "window_numbers",
]
