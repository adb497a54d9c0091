"""The kinds of identifiers that the Safe Harbor rule of HIPAA names, and one that was found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class IdentifierKind(StrEnum):
    """A kind of identifier, by the letters of 45 CFR 164.514(b)(2)(i).

    (Q), full-face photographs, cannot stand in the text of a query and has no kind here.
    """

    NAME = "name"
    PLACE = "place"
    DATE = "date"
    PHONE = "phone"
    FAX = "fax"
    EMAIL = "email"
    SSN = "ssn"
    MEDICAL_RECORD = "medical_record"
    PLAN = "plan"
    ACCOUNT = "account"
    LICENCE = "licence"
    VEHICLE = "vehicle"
    DEVICE = "device"
    URL = "url"
    IP = "ip"
    BIOMETRIC = "biometric"
    NUMBER = "number"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Found:
    """An identifier in a query: it stands from `start` to before `end`, and `rule` found it."""

    start: int
    end: int
    kind: IdentifierKind
    rule: str
