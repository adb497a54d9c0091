"""Say a report in German, French or Spanish, by one table of sentences (templates/sentences.toml).

The report is put together in English. Each sentence of it, those of promises, warnings and measures too, is looked up
in the table by its English words; `{name}` stands there for what varies, which is looked up in turn. What the table
does not have stays English, between two marks, so that a page can say that it is.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from html import unescape
from importlib.resources import files

from queryveil.errors import BadParameter
from queryveil.html_tables import Cell, Html, escape, written
from queryveil.reports import _blocks as blocks
from queryveil.reports.charts._svg import WIDTH, shortened

LANGUAGES = ("en", "de", "fr", "es")
START, END = "\ue000", "\ue001"
"""Around English text in a page of another language."""
_MARK = re.compile(f"[{START}{END}]")
_HOLE = re.compile(r"\{(\w+)\}")
_NUMBER = r"[-<≤≥]?\s?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[-+]?\d+)?(?: ?%)?"
_IS_NUMBER = re.compile(_NUMBER)
_IN_TEXT = re.compile(
    r"(?<![\w.,/])(?<!\w-)(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.\d+)(?:(?=e-?\d+\b)|(?![\w.]*\w))(?: %)?|(?<=\d) %"
)
_DATE = re.compile(r"(?<![\w./-])((?:19|20)\d\d)-(0[1-9]|1[0-2])(?:-([0-3]\d))?(?![\w./-]*\w)")
_SENTENCE_END = re.compile(r"(?<=[.!?:;])\s+")
_NODE = re.compile(r"(<[^<>]*>)([^<>]+)(?=<)")
_LISTS = ("; ", ", ", " and ", " + ")
_LEAST_LETTERS = 12
"""A template with fewer letters is too vague to be used where a part of it is not known."""
_MONTHS: Mapping[str, str] = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
}
_DAYS: Mapping[str, tuple[str, str]] = {
    "en": ("{day} {month} {year}", "{month} {year}"),
    "de": ("{day}. {month} {year}", "{month} {year}"),
    "fr": ("{day} {month} {year}", "{month} {year}"),
    "es": ("{day} de {month} de {year}", "{month} de {year}"),
}
_SIGNS: Mapping[str, tuple[str, str]] = {"de": (".", ","), "fr": ("\u202f", ","), "es": ("\u202f", ",")}
"""What stands between thousands, and before decimals."""
_AND: Mapping[str, str] = {"de": " und ", "fr": " et ", "es": " y "}


def with_marks(page: str) -> str:
    """Return a page in which English text between marks is said to be English."""
    return page.replace(START, '<span lang="en">').replace(END, "</span>")


def without_marks(text: str) -> str:
    """Return a text without the marks around what is English in it."""
    return _MARK.sub("", text)


@cache
def sentences() -> tuple[Mapping[str, str], ...]:
    """Return the table: each sentence by language."""
    text = files("queryveil.reports").joinpath("templates", "sentences.toml").read_text(encoding="utf-8")
    return tuple(tomllib.loads(text)["sentence"])


@dataclass(frozen=True, slots=True)
class Template:
    """A sentence with holes: a pattern of its English words, and how it is said in another language."""

    pattern: re.Pattern[str]
    said: str
    n_letters: int


def template_of(english: str, said: str) -> Template:
    """Return what recognises an English sentence, and says it in another language.

    `{n}`, and any name that begins with n, is a number; one that begins with raw is left as it is.

    >>> template_of("{n} rows of {rest}", "{n} Zeilen von {rest}").pattern.fullmatch("12 rows of a log").groupdict()
    {'n': '12', 'rest': 'a log'}
    """
    parts = _HOLE.split(english)
    holes = [f"(?P<{name}>{_NUMBER if name.startswith('n') else '.+?'})" for name in parts[1::2]]
    pattern = "".join(re.escape(part) + hole for part, hole in zip(parts[::2], [*holes, ""], strict=True))
    return Template(re.compile(pattern, re.DOTALL), said, sum(map(len, parts[::2])))


@cache
def spoken(lang: str) -> "Language":
    """Return a language by name; raise if reports are not written in it.

    >>> spoken("de").text("The promise holds"), spoken("en").text("made on 2026-03-31")
    ('Die Zusage ist eingehalten', 'made on 31 March 2026')
    """
    if lang not in LANGUAGES:
        raise BadParameter("lang", lang, allowed="en, de, fr or es")
    return Language(lang)


class Language:
    """A language in which reports are written: `text` says a text in it, `document` a whole report."""

    def __init__(self, name: str) -> None:
        self.name = name
        table = () if name == "en" else sentences()
        self._exact = {each["en"]: each[name] for each in table if "{" not in each["en"]}
        found = [template_of(each["en"], each[name]) for each in table if "{" in each["en"]]
        # The most telling one first.
        self._templates = sorted(found, key=lambda template: -template.n_letters)
        self._known: dict[str, str | None] = {}

    def text(self, english: str) -> str:
        """Return a text in this language; what is not known stays English, between two marks."""
        clean = _MARK.sub("\ufffd", english)
        if self.name == "en" or not clean.strip():
            return self._dated(clean)
        return self._said(clean) or " ".join(self._in_sentences(clean))

    def cell(self, cell: Cell) -> str:
        """Return a cell of a table as it is written in this language."""
        return self.text(cell) if isinstance(cell, str) else self.figures(written(cell))

    def stated(self, text: str) -> str:
        """Return what somebody said in a language of their own; only what the report says itself is looked up."""
        clean = _MARK.sub("\ufffd", text)
        return (None if self.name == "en" else self._said(clean)) or self._dated(clean)

    def figures(self, text: str) -> str:
        r"""Return a text with its numbers as they are written in this language.

        >>> Language("de").figures("1,234.5 of 20,000 (6.17 %)")
        '1.234,5 of 20.000 (6,17\xa0%)'
        """
        if self.name == "en":
            return text
        between, point = _SIGNS[self.name]
        swapped = {",": between, ".": point, " ": "\u00a0"}
        return _IN_TEXT.sub(lambda found: "".join(swapped.get(c, c) for c in found[0]), text)

    def document(self, report: blocks.Document) -> blocks.Document:
        """Return a report in this language."""
        return replace(
            report,
            title=self.text(report.title),
            kicker=self.text(report.kicker),
            badges=tuple(replace(each, text=self.text(each.text)) for each in report.badges),
            decision=self.text(report.decision),
            summary=tuple(map(self.text, report.summary)),
            alert=self.text(report.alert),
            facts=tuple((self.text(name), self.stated(fact)) for name, fact in report.facts),
            figures=tuple(
                blocks.Figure(value=self.cell(each.value), label=self.text(each.label), note=self.text(each.note))
                for each in report.figures
            ),
            sections=tuple(
                replace(each, title=self.text(each.title), blocks=tuple(map(self._block, each.blocks)))
                for each in report.sections
            ),
            footer=self.text(report.footer),
        )

    def _block(self, block: blocks.Block) -> blocks.Block:
        match block:
            case blocks.Paragraph(text=text):
                return replace(block, text=self.text(text))
            case blocks.Bullets(items=items):
                return blocks.Bullets(tuple(map(self.text, items)))
            case blocks.Form(fields=fields):
                return blocks.Form(fields=tuple(map(self.text, fields)))
            case blocks.Table(columns=columns, rows=rows, caption=caption, is_text=is_text):
                # Texts of a release are what they are in every language.
                say = written if is_text else self.cell
                cells = tuple(tuple(say(cell) for cell in row) for row in rows)
                return blocks.Table(columns=tuple(map(self.text, columns)), rows=cells, caption=self.text(caption))
            case blocks.Picture(svg=svg, instead=instead):
                table = None if instead is None else self._block(instead)
                assert table is None or isinstance(table, blocks.Table)
                return blocks.Picture(svg=Html(_NODE.sub(self._node, svg)), instead=table)
            case blocks.Commands():
                return block

    def _node(self, found: re.Match[str]) -> str:
        """Return a text in a drawing, no wider than that."""
        tag, text = found[1], unescape(found[2])
        if not text.strip():
            return found[0]
        said = without_marks(self.text(text.strip()))
        left, right = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
        return tag + escape(left + (shortened(said, width=WIDTH) if tag.startswith("<text") else said) + right)

    def _said(self, english: str) -> str | None:
        """Return a text in this language, None if it or a part of it is not known."""
        if english not in self._known:
            # While it is looked up it is not a part of itself.
            self._known[english] = None
            self._known[english] = self._found(english)
        return self._known[english]

    def _found(self, english: str) -> str | None:
        if english in self._exact:
            return self._exact[english]
        if _DATE.fullmatch(english):
            return self._dated(english)
        if not any(map(str.isalpha, english)) or _IS_NUMBER.fullmatch(english):
            return self.figures(english)
        found = self._other_case(english, fill=False) or next(self._filled(english), None)
        found = found or self._other_case(english, fill=True)
        if found is None and english[-1] in ".:":
            less = self._said(english[:-1])
            colon = "\u00a0:" if self.name == "fr" and english[-1] == ":" else english[-1]
            found = None if less is None else less + colon
        return found or self._listed(english)

    def _filled(self, english: str) -> Iterator[str]:
        for template in self._templates:
            match = template.pattern.fullmatch(english)
            parts = {} if match is None else {name: self._part(name, part) for name, part in match.groupdict().items()}
            if match is not None and None not in parts.values():
                yield template.said.format(**parts)

    def _part(self, name: str, part: str) -> str | None:
        return part if name.startswith("raw") else self._said(part)

    def _other_case(self, english: str, *, fill: bool) -> str | None:
        """Return a text that is known with its first letter in the other case, as it stands or with holes filled."""
        other = english[:1].swapcase() + english[1:]
        said = next(self._filled(other), None) if fill else self._exact.get(other)
        if said is None or (english[0].islower() and self.name == "de"):
            # German nouns keep their capitals.
            return said
        return (said[:1].upper() if english[0].isupper() else said[:1].lower()) + said[1:]

    def _listed(self, english: str) -> str | None:
        """Return a list of which each part is known."""
        for between in _LISTS:
            at = english.find(between)
            while at >= 0:
                left = self._said(english[:at])
                right = None if left is None else self._said(english[at + len(between) :])
                if left is not None and right is not None:
                    return f"{left}{_AND[self.name] if between == ' and ' else between}{right}"
                at = english.find(between, at + 1)
        return None

    def _in_sentences(self, english: str) -> Iterator[str]:
        """Yield sentence after sentence, as many at once as are known together."""
        pieces = _SENTENCE_END.split(english)
        while pieces:
            for n in range(len(pieces), 0, -1):
                said = self._said(" ".join(pieces[:n]))
                if said is not None:
                    break
            yield said or self._partly(pieces[0])
            pieces = pieces[n:]

    def _partly(self, english: str) -> str:
        """Return a sentence of which a part is not known, which is marked; or the whole is."""
        for template in self._templates:
            match = template.pattern.fullmatch(english) if template.n_letters >= _LEAST_LETTERS else None
            if match is not None:
                parts = {
                    name: self._part(name, part) or f"{START}{part}{END}" for name, part in match.groupdict().items()
                }
                return template.said.format(**parts)
        return f"{START}{english}{END}"

    def _dated(self, text: str) -> str:
        months, (with_day, without) = _MONTHS[self.name].split(), _DAYS[self.name]

        def date(found: re.Match[str]) -> str:
            year, month, day = found.groups()
            shape = with_day if day else without
            return shape.format(day=int(day or 0), month=months[int(month) - 1], year=year)

        return _DATE.sub(date, text)
