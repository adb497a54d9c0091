"""Find and remove what names a person in a query: names, numbers, addresses, dates."""

from queryveil.text.identifiers.identifiers import Cleaned, find_identifiers, remove_identifiers
from queryveil.text.identifiers.table import Found, IdentifierKind

__all__ = ["Cleaned", "Found", "IdentifierKind", "find_identifiers", "remove_identifiers"]
