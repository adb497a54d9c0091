"""Count the texts of a release: those that one person alone asked, those that hold an identifier, the most frequent.

A text is a query as the method writes it; texts are the same if their normal form is (NFC, lower case, single blanks).
A person asked a text if the method makes it of one of the person's rows, whether or not that row is in the release.
"""

import numpy as np
import polars as pl

from queryveil.data import Bools, Floats, Int32s, Int64s
from queryveil.release.manifest import TextCounts
from queryveil.text.tokens import encode, normal_form

N_TOP = 50
"""Paper: Hong et al., figure 2(c), counts how many of the 50 most frequent stay among the 50 most frequent."""


def count_texts(released: pl.Series, *, asked: pl.Series | None, users: pl.Series | None) -> TextCounts:
    """Count the distinct texts of released rows.

    - `released`: the text of each released row.
    - `asked`, `users`: text and user of each row of the original; None if it is not known who asked what (streams).

    >>> asked, users = pl.Series(["red wine", "Red  Wine", "gout"]), pl.Series(["u1", "u2", "u2"])
    >>> counts = count_texts(pl.Series(["red wine", "gout", "gout"]), asked=asked, users=users)
    >>> counts.n_texts, counts.n_of_one_person, counts.n_rows_of_one_person
    (2, 1, 2)
    """
    if asked is None or users is None:
        return counted(*distinct_texts(released), is_of_one=None)
    code, texts = encode(pl.concat([asked.rename(""), released.rename("")]))
    return count_numbered(texts, released=code[len(asked) :], asked=code[: len(asked)], users=encode(users)[0])


def count_numbered(texts: pl.Series, *, released: Int32s, asked: Int32s, users: Int32s) -> TextCounts:
    """Count the distinct texts of released rows as `count_texts` does, where rows have numbers of texts already."""
    number, forms = encode(_normal_form(texts))
    n_rows, sole = np.bincount(number[released], minlength=len(forms)), _sole(number[asked], users, n=len(forms))
    is_there = (n_rows > 0) & (forms != "").to_numpy()
    return counted(forms.filter(is_there), n_rows[is_there], is_of_one=sole[is_there] >= 0)


def counted(texts: pl.Series, n_rows: Int64s, *, is_of_one: Bools | None) -> TextCounts:
    """Return the counts of distinct texts, of which the rows are known, and whether one person alone asked each."""
    from queryveil.text.identifiers import remove_identifiers  # noqa: PLC0415 - loads its tables only where it is used

    has_identifier = remove_identifiers(texts).removed.is_not_null().to_numpy()
    return TextCounts(
        n_texts=len(texts),
        n_of_one_person=None if is_of_one is None else int(is_of_one.sum()),
        n_with_identifier=int(has_identifier.sum()),
        n_rows_of_one_person=None if is_of_one is None else int(n_rows[is_of_one].sum()),
        n_rows_with_identifier=int(n_rows[has_identifier].sum()),
    )


def distinct_texts(released: pl.Series) -> tuple[pl.Series, Int64s]:
    """Return the normal forms of released texts, each once and no empty one, and the rows of each."""
    code, written = encode(released)
    number, texts = encode(_normal_form(written))
    n_rows, is_text = np.bincount(number[code], minlength=len(texts)), texts != ""
    return texts.filter(is_text), n_rows[is_text.to_numpy()]


def n_top_kept(before: Int64s, after: Int64s, *, n_each: Int64s | int = 1, n_top: int = N_TOP) -> float:
    """Return how many of the most frequent texts are still among the most frequent; `n_each` have each pair of counts.

    Texts that are equally frequent share the last places between them, before and after.

    >>> n_top_kept(np.array([9, 8, 7, 0]), np.array([5, 0, 4, 9]), n_top=2)
    1.0
    >>> n_top_kept(np.array([9, 1]), np.array([9, 1]), n_each=np.array([1, 2]), n_top=2)
    2.0
    """
    mine, theirs = (_places(counts, n_each, n_top=n_top) for counts in (before, after))
    return float((n_each * np.minimum(mine, theirs)).sum())


def _places(counts: Int64s, n_each: Int64s | int, *, n_top: int) -> Floats:
    """Return the part of the first `n_top` places that each text has: 1, 0, or an equal part of the last ones."""
    values, number = np.unique(counts, return_inverse=True)
    n_equal = np.bincount(number, np.broadcast_to(n_each, len(counts)))
    n_above = n_equal.sum() - np.cumsum(n_equal)
    part: Floats = np.clip((n_top - n_above) / n_equal, 0, 1) * (values > 0)
    return part[number]


def sole_askers(texts: pl.Series, *, asked: pl.Series, users: Int32s | Int64s) -> Int64s:
    """Return the user (a number) who alone asked each text, which is in normal form; -1 where several did, or nobody.

    >>> sole_askers(pl.Series(["red wine", "gout"]), asked=pl.Series(["gout", "Gout"]), users=np.array([7, 7])).tolist()
    [-1, 7]
    """
    as_written, written = encode(asked)
    number, forms = encode(_normal_form(written))
    known = pl.DataFrame({"text": forms, "user": _sole(number[as_written], users, n=len(forms))})
    found = texts.to_frame("text").join(known, on="text", how="left", maintain_order="left")["user"]
    return found.fill_null(-1).to_numpy()


def _sole(code: Int32s, users: Int32s | Int64s, *, n: int) -> Int64s:
    """Return the one user of each number; -1 where there are several, or none."""
    sole = np.full(n, -1, np.int64)
    sole[code] = users
    sole[code[sole[code] != users]] = -1
    return sole


def _normal_form(texts: pl.Series) -> pl.Series:
    # Files of some formats have a blank in place of a NUL.
    return normal_form(texts.str.replace_all("\0", " ", literal=True))
