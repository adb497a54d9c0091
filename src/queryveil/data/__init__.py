"""Data types: query logs, transactions and profiles that are anonymized, groups and counts that are released."""

from queryveil.data.events import EVENTS_SCHEMA, KINDS, count_kinds, is_click
from queryveil.data.frames import Bools, Bytes, Float32s, Floats, Int8s, Int32s, Int64s, UInt64s, with_own_texts
from queryveil.data.log import (
    CLICKS_SCHEMA,
    MORE_CLICKS_SCHEMA,
    ROLES,
    TALLIES_SCHEMA,
    Format,
    Layout,
    QueryLog,
    Reading,
    Tallies,
)
from queryveil.data.profiles import GROUPS_SCHEMA, PROFILES_SCHEMA, Groups, Profiles
from queryveil.data.transactions import TRANSACTIONS_SCHEMA, Transactions

__all__ = ["Format", "Groups", "Layout", "Profiles", "QueryLog", "Reading", "Tallies", "Transactions"]
__all__ += ["CLICKS_SCHEMA", "EVENTS_SCHEMA", "GROUPS_SCHEMA", "PROFILES_SCHEMA", "ROLES", "TALLIES_SCHEMA"]
__all__ += ["KINDS", "MORE_CLICKS_SCHEMA", "TRANSACTIONS_SCHEMA", "count_kinds", "is_click"]
__all__ += ["Bools", "Bytes", "Float32s", "Floats", "Int8s", "Int32s", "Int64s", "UInt64s", "with_own_texts"]
