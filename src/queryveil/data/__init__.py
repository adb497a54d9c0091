"""Data types: query logs, transactions and profiles that are anonymized, groups and counts that are released."""

from queryveil.data.aggregates import CLICKS_SCHEMA, GROUPS_SCHEMA, TALLIES_SCHEMA, Groups, Tallies
from queryveil.data.frames import Bools, Bytes, Float32s, Floats, Int8s, Int32s, Int64s, UInt64s, with_own_texts
from queryveil.data.log import ROLES, Format, Layout, QueryLog, Reading
from queryveil.data.profiles import PROFILES_SCHEMA, Profiles
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
    "with_own_texts",
]
