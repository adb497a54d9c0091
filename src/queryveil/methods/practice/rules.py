"""Rules on the text of a query alone: those that DuckDuckGo proposed, Brave's Web Discovery Project, and Mozilla's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import polars as pl

from queryveil import progress
from queryveil.data import Bools, Floats, Int64s, QueryLog
from queryveil.guarantees import NoPromise, TextRule
from queryveil.methods.baselines import BY_DAY
from queryveil.methods.bots import check_queries
from queryveil.methods.practice.texts import (
    Asked,
    check_new_ids,
    found_in,
    has_any,
    is_address,
    periods,
    reasons_of,
    released,
)
from queryveil.methods.settings import BraveWdpSettings, Ddg2026Settings, MozillaSettings
from queryveil.release import ColumnPolicy, Release, rows_for
from queryveil.rng import check_seed
from queryveil.settings import check_settings
from queryveil.text.identifiers import Found, IdentifierKind
from queryveil.text.identifiers._kernels import FIRST, SURNAME, WORD
from queryveil.text.identifiers.table import identifier_table

_NUMBERS = (IdentifierKind.SSN, IdentifierKind.ACCOUNT, IdentifierKind.VEHICLE, IdentifierKind.DEVICE)
"""The kinds of numbers that have a check digit, as those of cards, accounts, cars and telephones."""
_NO_EVENTS = "addresses of pages that enough users clicked are kept by url, and events have those of all"
_PERSONAL = (IdentifierKind.EMAIL, IdentifierKind.PHONE, IdentifierKind.FAX, *_NUMBERS)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ddg2026(Ddg2026Settings):
    """Drop rows whose text holds personal data, and leave everything else with a pseudonym and the day.

    Promise: none. What the rules for identifiers do not recognise leaves.
    Not promised: anything. The queries of a person stay together, and a few of them can be nobody else's.

    Dropped are texts with an e-mail address, a telephone number, a postal address, the number of a card, an account, a
    car, a device or of social security, and with a full name that is not public. Texts are released in lower case with
    single blanks.

    - public_users: users who must have asked texts with a full name for it to be public; not published
    - columns: which other columns leave; by default the day
    - seed: repeat a run; not for releases

    >>> from queryveil.testing import log_of
    >>> release = Ddg2026().anonymize(log_of({"u1": ["gout diet", "call 212-555-0143", "ottinger@mail.example"]}))
    >>> release.log.frame["query"].to_list()
    ['gout diet']
    """

    name: ClassVar[str] = "ddg_2026"
    protected: ClassVar[tuple[str, ...]] = ()

    columns: ColumnPolicy = BY_DAY

    def __post_init__(self) -> None:
        check_settings(self)
        check_seed(self.seed)

    @property
    def promise(self) -> NoPromise:
        """What a release will promise."""
        kept = "all queries of a person stay together under one pseudonym"
        return NoPromise(reason=f"{kept}, and names and numbers that no rule recognises stay in them")

    def anonymize(self, log: QueryLog) -> Release:
        """Return the rows whose text holds no personal data that the rules recognise."""
        whole, log = log, rows_for(log, self.columns)
        self.columns.check(log.columns, has_events=log.events is not None)
        check_queries(log, method="ddg-2026")
        asked = Asked.of(log)
        progress.step("looking for personal data")
        found = found_in(asked.texts)
        personal = [
            place for place, each in found.items() if any(one.kind in _PERSONAL or is_address(one) for one in each)
        ]
        names = {
            place: [asked.texts[place][one.start : one.end] for one in each if one.kind is IdentifierKind.NAME]
            for place, each in found.items()
        }
        reasons = {
            "rows_of_identifiers": has_any(asked.texts, personal),
            "rows_of_unknown_people": self._unknown(log, asked, names),
        }
        stays, removed = reasons_of(asked, reasons)
        reason = self.promise.reason
        warning = f"promises nothing: {reason}; it is there to compare with, not to be handed out"
        return released(self, log, asked, log.frame, whole=whole, stays=stays, removed=removed, warnings=[warning])

    def _unknown(self, log: QueryLog, asked: Asked, names: Mapping[int, list[str]]) -> Bools:
        """Return which texts hold a name that too few users asked."""
        lists = [names.get(place, []) for place in range(len(asked.texts))]
        parts = pl.Series(lists, dtype=pl.List(pl.String))
        askers = asked.most_askers(parts, period=periods(log, within=None))
        public = set(askers.filter(pl.col("n_users") >= self.public_users)["part"])
        return has_any(asked.texts, [place for place, each in names.items() if not public.issuperset(each)])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BraveWdp(BraveWdpSettings):
    """Release each row by itself, without its user, if its text keeps the rules of Brave's Web Discovery Project.

    Promise: no released text breaks the rules, and every row has an id of its own.
    Not promised: that more than one person asked a text; names are no matter of these rules.

    Texts are judged and released in lower case with single blanks. Dropped are texts that are too long, of too many
    words, with a run of digits once punctuation is gone (a valid ISSN may stay, and an EAN-13 that is the only number),
    with an e-mail address however its @ is written, with `x:y@`, and with words that are too long.

    - most_characters: characters of a text, at most
    - most_logogram_characters: characters of one with Chinese, Japanese, Korean or Thai letters, at most
    - many_words: a text of more words goes if it has any of these letters, or too many long words
    - most_long_words: words of four characters or more in such a text, at most
    - most_digits: digits of a run, at most
    - longest_word: characters of a word, at most
    - longest_odd_word: characters of a word that is not made of plain letters, at most
    - url_users: users who must have clicked a page for its address to leave, where URLs are kept at all
    - columns: which other columns leave; by default the day
    - seed: repeat a run; not for releases

    >>> from queryveil.testing import log_of
    >>> log = log_of({"u1": ["gout diet", "call 0212 555 0143", "ottinger%40mail.example", "9780306406157"]})
    >>> sorted(BraveWdp().anonymize(log).log.frame["query"])
    ['9780306406157', 'gout diet']
    """

    name: ClassVar[str] = "brave_wdp"
    protected: ClassVar[tuple[str, ...]] = ()

    columns: ColumnPolicy = BY_DAY

    def __post_init__(self) -> None:
        check_settings(self)
        check_seed(self.seed)
        check_new_ids(self.columns)

    @property
    def promise(self) -> TextRule:
        """What a release will promise."""
        return TextRule(
            most_characters=self.most_characters,
            most_logogram_characters=self.most_logogram_characters,
            many_words=self.many_words,
            most_long_words=self.most_long_words,
            most_digits=self.most_digits,
            longest_word=self.longest_word,
            longest_odd_word=self.longest_odd_word,
            no_contacts=True,
        )

    def anonymize(self, log: QueryLog) -> Release:
        """Return the rows whose text keeps the rules, each with an id of its own."""
        whole, log = log, rows_for(log, self.columns, refusal=_NO_EVENTS)
        self.columns.check(log.columns, has_events=log.events is not None)
        check_queries(log, method="brave-wdp")
        progress.step("reading texts")
        asked = Asked.of(log)
        stays, removed = reasons_of(asked, self.reasons(asked.texts))
        frame = log.frame
        if "url" in self.columns.keep:
            users = pl.col("user").n_unique().over("url")
            few = (
                frame.select((users < self.url_users) & pl.col("url").is_not_null()).to_series().fill_null(value=False)
            )
            removed["page_addresses_of_few_users"] = int((few.to_numpy() & stays).sum())
            frame = frame.with_columns(url=pl.when(~few).then("url"))
        return released(self, log, asked, frame, whole=whole, stays=stays, removed=removed, alone=one_by_one(asked))

    def reasons(self, texts: pl.Series) -> dict[str, Bools]:
        """Return which texts break which rule.

        >>> {name for name, goes in BraveWdp().reasons(pl.Series(["call 0212 555 0143"])).items() if goes.any()}
        {'rows_of_long_numbers'}
        """
        length, n_words = texts.str.len_chars(), texts.str.count_matches(" ", literal=True) + 1
        has_logogram = texts.str.contains(_LOGOGRAM)
        is_long = (length > self.most_characters) | (has_logogram & (length > self.most_logogram_characters))
        has_many = texts.str.count_matches(r"[^ ]{4,}") > self.most_long_words
        odd = texts.str.extract_all(rf"[^ ]{{{self.longest_odd_word + 1},}}").list.eval(
            ~pl.element().str.contains(_PLAIN)
        )
        long_word = texts.str.contains(rf"[^ ]{{{self.longest_word + 1}}}") | odd.list.any()
        many_digits = (texts.str.count_matches("[0-9]") > self.most_digits).to_numpy()
        digits = np.zeros(len(texts), np.bool_)
        digits[many_digits] = [has_long_number(text, most=self.most_digits) for text in texts.filter(many_digits)]
        found = {
            "rows_of_long_texts": is_long,
            "rows_of_many_words": (n_words > self.many_words) & (has_many | has_logogram),
            "rows_of_contacts": texts.str.contains(_EMAIL) | texts.str.contains(_PASSWORD),
            "rows_of_long_words": long_word,
        }
        return {name: each.to_numpy() for name, each in found.items()} | {"rows_of_long_numbers": digits}


_LOGOGRAM = r"[\u4e00-\u9fff\u3040-\u30ff\uac00-\ud7af\u0e00-\u0e7f]"
_EMAIL = r"[a-z0-9_@-](?:@|%(?:25)*40)[a-z0-9_-]+\.[a-z0-9_-]"
_PASSWORD = r"[^:]:[^@]+@"
_PLAIN = r"^[a-zäöüé][a-zäöüéß]+$"
_ISSN = re.compile(r"[0-9]{4}-?[0-9]{3}[0-9x]")
_SHORTEST_NUMBER, _EAN_DIGITS = 3, 13


def has_long_number(text: str, *, most: int) -> bool:
    """Return whether a text has a run of more than so many digits once all but letters and digits is gone.

    >>> [has_long_number(text, most=7) for text in ("090/90-2", "5555 3235", "issn 0378-5955", "ean 4006381333931")]
    [False, True, False, False]
    """
    words = text.split(" ")
    first = next((place for place, word in enumerate(words) if _ISSN.fullmatch(word) and _is_issn(word)), None)
    if first is not None:
        words[first] = ""
    rest = " ".join(words)
    runs = re.findall("[0-9]+", re.sub("[^a-z0-9]", "", rest))
    numbers = [run for run in runs if len(run) >= _SHORTEST_NUMBER]
    if len(numbers) == 1 and len(numbers[0]) == _EAN_DIGITS and numbers[0] in rest and _is_ean(numbers[0]):
        runs.remove(numbers[0])
    return any(len(run) > most for run in runs)


def _is_issn(word: str) -> bool:
    digits = word.replace("-", "")
    return sum((8 - i) * (10 if digit == "x" else int(digit)) for i, digit in enumerate(digits)) % 11 == 0


def _is_ean(digits: str) -> bool:
    return sum((3 if i % 2 else 1) * int(digit) for i, digit in enumerate(digits)) % 10 == 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Mozilla(MozillaSettings):
    """Release rows whose text is English and long enough, and has no digit, no @ and no name of a person.

    Promise: no released text is too short or has a digit or an @, and every row has an id of its own.
    Not promised: that a text is English or holds no name, since no model finds all names; or that two people asked it.

    Differs: Mozilla's models for language and names are not ours. A text is English here if enough of its words stand
    in the dictionary that comes with the package. The score of a name is 1 where the rules for identifiers find a full
    name, and else the share of words that are a first name or a surname and no other word.

    - least_characters: characters of a text, at least
    - name_score: the score from which a text holds a name
    - english: the share of words that must stand in the dictionary; not published
    - users: keep a pseudonym of each user, so that a person's rows stay together; not published
    - columns: which other columns leave; by default none
    - seed: repeat a run; not for releases

    >>> from queryveil.testing import log_of
    >>> log = log_of({"u1": ["red wine glasses", "gout", "windows 11", "waltraud ottinger", "rote grütze rezept"]})
    >>> Mozilla().anonymize(log).log.frame["query"].to_list()
    ['red wine glasses']
    """

    name: ClassVar[str] = "mozilla"
    protected: ClassVar[tuple[str, ...]] = ()

    columns: ColumnPolicy = field(default_factory=ColumnPolicy)

    def __post_init__(self) -> None:
        check_settings(self)
        check_seed(self.seed)
        if not self.users:
            check_new_ids(self.columns)

    @property
    def promise(self) -> TextRule:
        """What a release will promise."""
        return TextRule(least_characters=self.least_characters, no_digits=True, no_at=True, alone=not self.users)

    def anonymize(self, log: QueryLog) -> Release:
        """Return the rows whose text keeps the rules."""
        whole, log = log, rows_for(log, self.columns)
        self.columns.check(log.columns, has_events=log.events is not None)
        check_queries(log, method="mozilla")
        progress.step("reading texts")
        asked = Asked.of(log)
        texts = asked.texts
        is_short = (texts.str.len_chars() < self.least_characters).to_numpy()
        has_digit = texts.str.contains(r"\p{Nd}").to_numpy()
        has_at = texts.str.contains("@", literal=True).to_numpy()
        english, names = _shares(texts)
        names[[place for place, found in found_in(texts).items() if _has_name(found)]] = 1.0
        stays, removed = reasons_of(
            asked,
            {
                "rows_of_short_texts": is_short,
                "rows_of_digits": has_digit,
                "rows_of_contacts": has_at,
                "rows_of_other_languages": english < self.english,
                "rows_of_names": names >= self.name_score,
            },
        )
        alone = None if self.users else one_by_one(asked)
        return released(self, log, asked, log.frame, whole=whole, stays=stays, removed=removed, alone=alone)


def _has_name(found: list[Found]) -> bool:
    return any(each.kind is IdentifierKind.NAME for each in found)


def _shares(texts: pl.Series) -> tuple[Floats, Floats]:
    """Return the share of each text's words that are English, and that are names of people and nothing else.

    >>> [share.round(2).tolist() for share in _shares(pl.Series(["red wine", "red waltraud", "grütze"]))]
    [[1.0, 0.5, 0.0], [0.0, 0.5, 0.0]]
    """
    words = (
        texts.str.extract_all(r"[\p{L}\p{M}]+")
        .to_frame("word")
        .with_row_index("text")
        .explode("word", empty_as_null=False)
    )
    distinct = words["word"].unique()
    tokens = identifier_table().tokens
    classes = pl.Series([tokens.get(word, 0) for word in distinct], dtype=pl.Int64)
    known = pl.DataFrame({"word": distinct, "class": classes})
    is_word, is_name = (pl.col("class") & WORD) > 0, (pl.col("class") & (FIRST | SURNAME)) > 0
    shares = (
        words.join(known, on="word").group_by("text").agg(english=is_word.mean(), names=(is_name & ~is_word).mean())
    )
    whole = texts.to_frame("t").with_row_index("text").join(shares, on="text", how="left", maintain_order="left")
    english, names = (whole[name].fill_null(0.0).to_numpy().copy() for name in ("english", "names"))
    return english, names


def one_by_one(asked: Asked) -> Int64s:
    """Return the number of each row among those of its user: an id for every row."""
    rows = pl.DataFrame({"owner": asked.owner})
    return rows.select((pl.int_range(pl.len()).over("owner")).cast(pl.Int64).alias("n"))["n"].to_numpy()
