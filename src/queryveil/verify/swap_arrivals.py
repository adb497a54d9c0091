"""What came into the pools of a live anonymizer, made from the log that it read.

The one checker that reads texts as the methods do: the promise is about these categories and about queries without
these identifiers. Whether they are the right ones is another question.
"""

from __future__ import annotations

import hashlib
import hmac

import numpy as np
import polars as pl

from queryveil.columns import Ids
from queryveil.errors import BadInput
from queryveil.guarantees import SwapAnonymity
from queryveil.log import QueryLog
from queryveil.progress import step
from queryveil.release import Release
from queryveil.text.categories import CATEGORIES
from queryveil.text.classifier import Classifier
from queryveil.text.identifiers import remove_identifiers
from queryveil.verify.arrivals import Arrivals
from queryveil.verify.tokens import number

__all__ = ["Classifier", "arrivals_of"]

_ID_LENGTH = 32


def arrivals_of(
    log: QueryLog, *, release: Release, key: bytes | None = None, classifier: Classifier | None = None
) -> Arrivals:
    """Give what came in, in the order and by the names that the manifest of a release tells.

    Rows come by time, those without one last, unless `order` says that they came as the file has them. A log without
    times was shuffled first; then its release has no times either, and no order could be judged.
    """
    manifest = release.manifest
    parameters, columns = manifest.parameters, manifest.columns
    chosen = classifier or _classifier(parameters.get("classifier"))
    names = _check_ids(columns.ids, key)
    frame = log.frame.select(name for name in ("user", "query", "time") if name in log.columns)
    if "time" in frame.columns and _is_by_time(release):
        frame = frame.sort("time", nulls_last=True, maintain_order=True)
    step("categories")
    frame = _events(frame, chosen, drops_unclassified=parameters.get("unclassified") == "drop")
    if names is not None:
        frame = frame.with_columns(_keyed(frame["user"], names))
        _check_key(frame["user"], released=release.log.frame["user"])
    max_pool = parameters.get("max_pool")
    # A service dates rows by its own clock, which may be behind that of the events; and where events did not come by
    # time, the times of rows in no order do not say which left first.
    tells_when = parameters.get("times") != "of release" and (_is_stream(release) or _is_by_time(release))
    return Arrivals(
        frame=frame,
        time_unit=columns.time.unit if tells_when else None,
        max_pool=max_pool if isinstance(max_pool, int) else None,
        in_order=_is_stream(release),
    )


def _is_stream(release: Release) -> bool:
    """Whether rows stand in the order in which they left; those of a file are shuffled."""
    return isinstance(release.promise, SwapAnonymity) and release.promise.remembered is not None


def _is_by_time(release: Release) -> bool:
    return release.manifest.parameters.get("order", "file" if _is_stream(release) else "time") == "time"


def _classifier(name: object) -> Classifier:
    if name in ("evidence", "paper"):
        return Classifier(kind=str(name))
    raise BadInput(
        "this release was made with tables of your own: give them too (--frequencies, --recommendations, --categories)"
    )


def _check_ids(ids: Ids, key: bytes | None) -> bytes | None:
    """Give the key by which users can be found in the release; none if they have their own names."""
    if ids is Ids.FRESH:
        raise BadInput(
            "its user ids are fresh, so who got whose query cannot be judged; anonymize with --ids keyed --key FILE"
        )
    if ids is Ids.KEYED and key is None:
        raise BadInput("its user ids are keyed, so the key is needed to judge who got whose query: add --key FILE")
    return key if ids is Ids.KEYED else None


def _events(frame: pl.DataFrame, classifier: Classifier, *, drops_unclassified: bool) -> pl.DataFrame:
    """Take identifiers out of the queries, leave out what is empty, and say the category of the rest."""
    queries = number(frame["query"])
    cleaned = remove_identifiers(queries.distinct).queries
    category = classifier.classify(cleaned).category
    stays = (cleaned.str.strip_chars() != "").to_numpy()
    if drops_unclassified:
        stays &= category >= 0
    category = np.where(category < 0, len(CATEGORIES), category).astype(np.int8)
    events = frame.with_columns(
        cleaned.gather(queries.codes).alias("query"), pl.Series("category", category[queries.codes])
    )
    return events.filter(pl.Series(stays[queries.codes]))


def _keyed(users: pl.Series, key: bytes) -> pl.Series:
    found = number(users)
    names = [hmac.digest(key, user.encode(), hashlib.sha256).hex()[:_ID_LENGTH] for user in found.distinct]
    return pl.Series(names, dtype=pl.String).gather(found.codes).alias("user")


def _check_key(users: pl.Series, *, released: pl.Series) -> None:
    """Refuse a key under which nobody is found: that is another key, or another log."""
    if len(released) and not released.is_in(users.unique().implode()).any():
        raise BadInput("with this key no user of the release is found in the original; give the key it was made with")
