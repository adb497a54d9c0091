"""Identify the candidates of a pair: by ids, by the items that fit a person, or by what both did."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from queryveil.data import Groups, Int64s, QueryLog, Tallies
from queryveil.errors import BadInput
from queryveil.guarantees import DifferentialPrivacy, SwapAnonymity
from queryveil.pairing.identity import Identity, identify_by_fit, identify_by_id, identify_by_overlap
from queryveil.release import Ids, keyed
from queryveil.text.tokens import Tokens, encode, hash_tokens

if TYPE_CHECKING:
    from queryveil.pairing.pair import Pair


def identify(pair: Pair) -> Identity:
    """Return which users of the original each candidate of a pair may be."""
    release, users, candidates = pair.release, pair.users, pair.candidates
    data, columns, parameters = release.data, release.manifest.columns, release.manifest.parameters
    if pair.ancestors is not None and not isinstance(data, QueryLog):
        return identify_by_fit(
            pair.before, after=pair.after, ancestors=pair.ancestors, once=bool(parameters.get("distinct"))
        )
    if isinstance(data, Groups | Tallies) or isinstance(release.promise, DifferentialPrivacy):
        # Users drawn from noisy counts are nobody, whatever their ids.
        return Identity.unknown(len(candidates))
    if isinstance(data, QueryLog) and columns.ids is Ids.KEEP:
        found = identify_by_id(candidates, users=users)
        _check_known(found, "none of its user ids is in the original: give the log that it was made from")
        return found
    if isinstance(data, QueryLog) and columns.ids is Ids.KEYED and parameters.get("window") is None:
        if pair.key is None:
            raise BadInput("its user ids are keyed, so the key is needed to tell who is who: add --key FILE")
        found = identify_by_id(candidates, users=keyed(users, key=pair.key))
        _check_known(found, "none of its user ids comes from this key and the original: give those it was made with")
        return found
    if isinstance(release.promise, SwapAnonymity):
        raise BadInput("its user ids are fresh, so nobody can tell who is who; anonymize with --ids keyed --key FILE")
    is_hashed = release.manifest.method == "token_hash"
    if is_hashed and pair.key is None:
        raise BadInput("its terms are hashed, so the key is needed to tell who is who: add --key FILE")
    before, after = _cells(pair)
    found = identify_by_overlap(after, users=before, n_candidates=len(candidates), n_users=len(users))
    if is_hashed:
        _check_known(found, "none of its terms comes from this key and the original: give those it was made with")
    return found


def _check_known(identity: Identity, reason: str) -> None:
    """Raise if nobody is known; attackers would seem to find nobody, however much they find."""
    if identity.n_candidates and not len(identity.users.values):
        raise BadInput(reason)


def _cells(pair: Pair) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return what each user and each candidate did as cells: a term, and when and where it led if both sides tell.

    Where items moved up, the cells of an original's term are all items that may stand for it.
    """
    row, terms = _occurrences(pair.tokens[0])
    released_row, released_terms = _occurrences(pair.tokens[1])
    if pair.release.manifest.method == "token_hash" and pair.key is not None:
        own = pair.original_tokens.vocabulary
        number, _ = encode(pl.concat([pair.vocabulary.rename(""), hash_tokens(own, key=pair.key).rename("")]))
        terms = number[len(pair.vocabulary) :].astype(np.int64)[terms]
    if pair.generalisations is not None:
        items = pair.generalisations.take(terms)
        row, terms = row[items.row_of_entry], items.values
    frame = pl.DataFrame({"term": np.concatenate([terms, released_terms])})
    for name, columns in (("moment", _moments(pair)), ("url", _urls(pair))):
        if columns is not None:
            frame = frame.with_columns(pl.concat([columns[0].gather(row), columns[1].gather(released_row)]).alias(name))
    # Two of a million cells fall together by chance once in forty million logs.
    cells = frame.hash_rows()
    return (
        pl.DataFrame({"owner": pair.user[row], "cell": cells[: len(row)]}),
        pl.DataFrame({"owner": pair.candidate[released_row], "cell": cells[len(row) :]}),
    )


def _occurrences(tokens: Tokens) -> tuple[Int64s, Int64s]:
    """Return the row of each occurrence of a term, and the term."""
    terms = tokens.row_terms()
    return terms.row_of_entry, terms.values.astype(np.int64)


def _moments(pair: Pair) -> tuple[pl.Series, pl.Series] | None:
    """Return the times of both, rounded as the release's are; None if one has none."""
    unit, data = pair.release.manifest.columns.time.unit, pair.release.data
    if unit is None or "time" not in pair.log.columns or "time" not in data.columns:
        return None
    step = unit // timedelta(microseconds=1)
    return pair.log.frame["time"].to_physical() // step, data.frame["time"].to_physical() // step


def _urls(pair: Pair) -> tuple[pl.Series, pl.Series] | None:
    if "url" not in pair.log.columns or "url" not in pair.release.data.columns:
        return None
    released = pair.release.data.frame["url"]
    # In AOL's format a column that was dropped is there and empty.
    return None if released.null_count() == len(released) else (pair.log.frame["url"], released)
