"""A release: data, promise and manifest, the rule for released columns, and its folder."""

from queryveil.release.columns import (
    EVENTS,
    ColumnPolicy,
    ColumnReport,
    Ids,
    TimeDetail,
    check_key,
    ids_per_window,
    keyed,
    new_key,
    pseudonyms_of_window_ids,
    window_numbers,
    window_starts,
)
from queryveil.release.contents import SIGNATURE, Contents
from queryveil.release.events import as_made_from, count_events, release_of, rows_for
from queryveil.release.manifest import (
    MANIFEST,
    SEEDED_NOISE,
    Counts,
    DataFile,
    EventCounts,
    Manifest,
    Noise,
    Part,
    TextCounts,
    event_facts,
    sizes,
    sum_of_parts,
    text_facts,
    versions,
)
from queryveil.release.release import Release, check_target, read_release, reserved

__all__ = ["MANIFEST", "SEEDED_NOISE", "SIGNATURE", "Contents", "Counts", "DataFile", "Manifest", "Noise", "Part"]
__all__ += ["ColumnPolicy", "ColumnReport", "Ids", "TimeDetail"]
__all__ += ["Release", "TextCounts", "check_key", "check_target", "new_key", "read_release", "reserved"]
__all__ += ["ids_per_window", "keyed", "pseudonyms_of_window_ids", "window_numbers", "window_starts"]
__all__ += ["sizes", "sum_of_parts", "text_facts", "versions"]
__all__ += ["EVENTS", "EventCounts", "as_made_from", "count_events", "event_facts", "release_of", "rows_for"]
