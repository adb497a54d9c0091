"""Data types: query logs, transactions and profiles that are anonymized, groups and counts that are released."""

from queryveil.data.frames import Bools, Bytes, Float32s, Floats, Int8s, Int32s, Int64s, UInt64s, with_own_texts
from queryveil.data.log import (
    CLICKS_SCHEMA,
    EVENTS_SCHEMA,
    MORE_CLICKS_SCHEMA,
    ROLES,
    TALLIES_SCHEMA,
    Format,
    Layout,
    QueryLog,
    Reading,
    Tallies,
    is_click,
)
from queryveil.data.profiles import GROUPS_SCHEMA, PROFILES_SCHEMA, Groups, Profiles
from queryveil.data.transactions import TRANSACTIONS_SCHEMA, Transactions

__all__ = ["Format", "Groups", "Layout", "Profiles", "QueryLog", "Reading", "Tallies", "Transactions"]
__all__ += ["CLICKS_SCHEMA", "EVENTS_SCHEMA", "GROUPS_SCHEMA", "PROFILES_SCHEMA", "ROLES", "TALLIES_SCHEMA"]
__all__ += ["MORE_CLICKS_SCHEMA", "TRANSACTIONS_SCHEMA", "is_click"]
__all__ += ["Bools", "Bytes", "Float32s", "Floats", "Int8s", "Int32s", "Int64s", "UInt64s", "with_own_texts"]
