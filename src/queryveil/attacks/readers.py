"""Readers of a release: who may look at it, what each knows, and which attackers stand for them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from queryveil.errors import BadParameter


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Somebody who may read a release.

    - `name`: as in `--reader`.
    - `title`: what people call them.
    - `knows`: what they have beside the release.
    - `attackers`: the names of the attackers that stand for them, without the `+T` of those that sort by time.
    """

    name: str
    title: str
    knows: str
    attackers: tuple[str, ...]


_FROM_THE_RELEASE = (
    *("rare_pair", "vanity", "fragments", "named_fragments", "stitch", "repeats", "token_inversion", "added_rows"),
    *("later_log", "as_released", "active_id", "rebuild_1", "rebuild_2", "rebuild_3", "rebuild_4", "shared_term"),
)
_FROM_A_PERSON = ("known_terms", "likely_terms", "counted_terms", "clock", "clock_equals", "known_profile", "sensitive")
_FROM_THE_LOG = ("membership", "neighbour", "shared_weight")
_BY_TAKING_PART = ("sybil", "sybil_early")
_FROM_A_SITE = ("site_owner",)

_READERS = (
    Reader(
        name="recipient",
        title="Recipient",
        knows="the release, public logs, directories of names, and another log of the same people",
        attackers=_FROM_THE_RELEASE,
    ),
    Reader(
        name="acquaintance",
        title="Acquaintance",
        knows="some queries of a person, or when the person searched",
        attackers=_FROM_A_PERSON,
    ),
    Reader(
        name="site-owner",
        title="Owner of a clicked site",
        knows="the visits to one page, with their days",
        attackers=_FROM_A_SITE,
    ),
    Reader(
        name="insider",
        title="Insider",
        knows="the history of a person, or the log but for one person",
        attackers=_FROM_THE_LOG,
    ),
    Reader(
        name="participant",
        title="Recipient who searches beforehand",
        knows="queries of their own, asked under several ids before the release is made",
        attackers=_BY_TAKING_PART,
    ),
    Reader(
        name="state",
        title="State body",
        knows="whatever any of the others know",
        attackers=(*_FROM_THE_RELEASE, *_FROM_A_PERSON, *_FROM_A_SITE, *_FROM_THE_LOG, *_BY_TAKING_PART),
    ),
)
READERS: Mapping[str, Reader] = {reader.name: reader for reader in _READERS}
"""Every reader by name. The releaser has the log itself, and needs no release."""


def check_readers(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of readers; raise if there is no such reader, or none at all.

    >>> check_readers(["recipient", "site-owner"])
    ('recipient', 'site-owner')
    """
    asked = tuple(dict.fromkeys(names))
    for name in asked or ("",):
        if name not in READERS:
            raise BadParameter("reader", name or "nobody", allowed=f"one or more of {', '.join(READERS)}")
    return asked


def attackers_of(names: Iterable[str]) -> frozenset[str]:
    """Return the names of the attackers that stand for these readers.

    >>> sorted(attackers_of(["site-owner", "participant"]))
    ['site_owner', 'sybil', 'sybil_early']
    """
    return frozenset(attacker for name in check_readers(names) for attacker in READERS[name].attackers)
