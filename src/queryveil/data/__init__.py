"""Data types: query logs, transactions and profiles that are anonymized, groups and counts that are released."""

from queryveil.data.arrays import Bools, Bytes, Float32s, Floats, Int8s, Int32s, Int64s, UInt64s
from queryveil.data.frames import Framed, to_frame, with_own_texts
from queryveil.data.groups import GROUPS_SCHEMA, Groups
from queryveil.data.log import ROLES, Format, Layout, QueryLog, Reading
from queryveil.data.profiles import PROFILES_SCHEMA, Profiles, check_weighted
from queryveil.data.tallies import CLICKS_SCHEMA, TALLIES_SCHEMA, Tallies
from queryveil.data.transactions import TRANSACTIONS_SCHEMA, Transactions

__all__ = [
    "CLICKS_SCHEMA",
    "GROUPS_SCHEMA",
    "PROFILES_SCHEMA",
    "ROLES",
    "TALLIES_SCHEMA",
    "TRANSACTIONS_SCHEMA",
    "Bools",
    "Bytes",
    "Float32s",
    "Floats",
    "Format",
    "Framed",
    "Groups",
    "Int8s",
    "Int32s",
    "Int64s",
    "Layout",
    "Profiles",
    "QueryLog",
    "Reading",
    "Tallies",
    "Transactions",
    "UInt64s",
    "check_weighted",
    "to_frame",
    "with_own_texts",
]
