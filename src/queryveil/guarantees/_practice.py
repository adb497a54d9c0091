"""What can be promised of methods of practice: who asked a text or its words, and rules that no text breaks."""

from typing import ClassVar

from queryveil.errors import BadParameter
from queryveil.guarantees._promise import ONE_RELEASE, Promise, check_k, parse_window

ANY = "all"
"""What a device, a country or a language is called where it is not told."""
_REGIONS = {
    "Africa": "AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EG EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU "
    "MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW",
    "Americas": "AG AI AR AW BB BL BM BO BQ BR BS BZ CA CL CO CR CU CW DM DO EC FK GD GF GL GP GT GY HN HT JM KN KY "
    "LC MF MQ MS MX NI PA PE PM PR PY SR SV SX TC TT US UY VC VE VG VI",
    "Asia": "AE AF AM AZ BD BH BN BT CN CY GE HK ID IL IN IQ IR JO JP KG KH KP KR KW KZ LA LB LK MM MN MO MV MY "
    "NP OM PH PK PS QA SA SG SY TH TJ TL TM TR TW UZ VN YE",
    "Europe": "AD AL AT AX BA BE BG BY CH CZ DE DK EE ES FI FO FR GB GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC "
    "MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA UK VA XK",
    "Oceania": "AS AU CK FJ FM GU KI MH MP NC NF NR NU NZ PF PG PN PW SB TK TO TV VU WF WS",
}
REGIONS = {
    country: region for region, countries in _REGIONS.items() for country in [*countries.split(), region.upper()]
}
"""The region of the world of each country by its two letters, after the United Nations (M49), and of itself."""
_IDS = "User ids are counted, not people: whoever can search under many ids lets a text of their choice pass."
_RARE_TOGETHER = "Several things that many people share can together be one person's alone."


class AskedTexts(Promise, frozen=True, kw_only=True, tag="asked_texts"):
    """Every text was asked by at least n_users users, and every row of clicks is of at least n_row_users.

    - `n_users`: the users who asked a text, within the last `within` of the log (`395d`; None: anywhere in it).
    - `n_row_users`: the users who clicked the page for the text, on the device and in the country that the row tells,
      within the last `rows_within`. Counts are those of that time, and exact.

    >>> print(AskedTexts(n_users=30, n_row_users=5, within=None, rows_within=None).in_words())
    Every text was asked by at least 30 users, and every page, device and country beside a text is that of clicks by at
    least 5; users and times are not released, and counts are exact.
    """

    released: ClassVar[str] = "queries"
    needs_original: ClassVar[bool] = True

    n_users: int
    n_row_users: int
    within: str | None
    rows_within: str | None

    def __post_init__(self) -> None:
        check_k(self.n_users)
        check_k(self.n_row_users)
        for name in ("within", "rows_within"):
            if getattr(self, name) is not None:
                parse_window(getattr(self, name), name=name)

    def title(self) -> str:
        return f"Rule of {self.n_users} users a text, {self.n_row_users} a click"

    def in_words(self) -> str:
        within = f" within {self.within}" if self.within else ""
        rows_within = f" within {self.rows_within}" if self.rows_within else ""
        return (
            f"Every text was asked by at least {self.n_users} users{within}, and every page, device and country beside "
            f"a text is that of clicks by at least {self.n_row_users}{rows_within}; users and times are not released, "
            "and counts are exact."
        )

    def not_promised(self) -> tuple[str, ...]:
        return (
            "Counts are exact: whoever knows all who asked a text but one learns whether that one did, and two "
            "releases of which one has a person more differ by that person's searches.",
            "A text that many people ask can name somebody.",
            _IDS,
            ONE_RELEASE,
        )


class AskedEntities(Promise, frozen=True, kw_only=True, tag="asked_entities"):
    """Every entity of every text was asked by at least n_users users, and every cell is that of at least cell_users.

    An entity is a full name, an address or a phone number, as far as the rules for identifiers find them, and else what
    stands between blanks, without punctuation at its ends. A cell is what a row tells of device, country and language.

    - `n_users`: the users who asked the entity within one stretch of `within` (`395d`; None: anywhere in the log),
      counted back from the end of the log, as far as `listed` goes (None: to its beginning).
    - `cell_users`: the users of the log whose rows would tell the same cell.

    >>> print(AskedEntities(n_users=50, cell_users=1000, within=None, listed=None).in_words())
    Every word, full name, address and phone number of every text was asked by at least 50 users, and every device,
    country and language that a row tells is that of at least 1,000 users; ids change with every mini-session.
    """

    needs_original: ClassVar[bool] = True

    n_users: int
    cell_users: int
    within: str | None
    listed: str | None

    def __post_init__(self) -> None:
        check_k(self.n_users)
        check_k(self.cell_users)
        for name in ("within", "listed"):
            if getattr(self, name) is not None:
                parse_window(getattr(self, name), name=name)

    @property
    def changes_ids(self) -> bool:
        return True

    def title(self) -> str:
        return f"Rule of {self.n_users} users a word, {self.cell_users:,} a cell"

    def in_words(self) -> str:
        within = f" within {self.within}" if self.within else ""
        return (
            f"Every word, full name, address and phone number of every text was asked by at least {self.n_users} users"
            f"{within}, and every device, country and language that a row tells is that of at least "
            f"{self.cell_users:,} users; ids change with every mini-session."
        )

    def not_promised(self) -> tuple[str, ...]:
        return (
            f"{_RARE_TOGETHER} A text of common words can be one that nobody else asked.",
            "A name or an address that the rules do not recognise counts as its words, each of which may be common.",
            "Rows of a mini-session belong together, and those of a person may be joined by what stands in them.",
            "Clicked pages, ranks and times that were kept are not covered.",
            _IDS,
            ONE_RELEASE,
        )


class TextRule(Promise, frozen=True, kw_only=True, tag="text_rule", repr_omit_defaults=True):
    """No released text breaks a rule on its letters; a setting that is None, or no, asks for nothing.

    - `least_characters`, `most_characters`: the least and the most characters of a text.
    - `most_logogram_characters`: the most of a text with Chinese, Japanese, Korean or Thai letters.
    - `many_words`, `most_long_words`: a text of more than `many_words` words has no such letters, and at most
      `most_long_words` words of four characters or more.
    - `most_digits`: the most digits in a run once punctuation and blanks are gone; a valid ISSN does not count, nor a
      valid EAN-13 that is the only number of three digits and more.
    - `longest_word`, `longest_odd_word`: the most characters of a word, and of one that is not made of the letters a to
      z, ä, ö, ü, é and ß alone.
    - `no_contacts`: no e-mail address, however its @ is written, and no password before an @ (`x:y@`).
    - `no_digits`, `no_at`: no digit, and no @.
    - `alone`: every row has an id of its own.

    >>> print(TextRule(least_characters=6, no_digits=True, no_at=True).in_words())
    No released text has fewer than 6 characters, a digit or an @; every row stands alone. Nothing is promised of how
    many people asked it.
    """

    least_characters: int = 0
    most_characters: int | None = None
    most_logogram_characters: int | None = None
    many_words: int | None = None
    most_long_words: int | None = None
    most_digits: int | None = None
    longest_word: int | None = None
    longest_odd_word: int | None = None
    no_contacts: bool = False
    no_digits: bool = False
    no_at: bool = False
    alone: bool = True

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < 0):
                raise BadParameter(name, value, allowed="0 or more, or none")
        if (self.many_words is None) is not (self.most_long_words is None):
            raise BadParameter("many_words", self.many_words, allowed="given with most_long_words, or left out with it")

    @property
    def changes_ids(self) -> bool:
        return self.alone

    def title(self) -> str:
        return "Rule on texts"

    def in_words(self) -> str:
        said = {
            f"fewer than {self.least_characters} characters": self.least_characters,
            f"more than {self.most_characters} characters": self.most_characters is not None,
            f"more than {self.most_logogram_characters} with Chinese, Japanese, Korean or Thai letters": (
                self.most_logogram_characters is not None
            ),
            f"more than {self.most_digits} digits in a run": self.most_digits is not None,
            f"more than {self.many_words} words of which more than {self.most_long_words} are long": (
                self.many_words is not None
            ),
            f"a word of more than {self.longest_word} characters": self.longest_word is not None,
            f"a word of more than {self.longest_odd_word} with other signs than letters": (
                self.longest_odd_word is not None
            ),
            "an e-mail address": self.no_contacts,
            "a digit": self.no_digits,
            "an @": self.no_at,
        }
        *most, last = [words for words, applies in said.items() if applies] or ["nothing in it"]
        rule = f"{', '.join(most)} or {last}" if most else last
        alone = "; every row stands alone" if self.alone else ""
        return f"No released text has {rule}{alone}. Nothing is promised of how many people asked it."

    def not_promised(self) -> tuple[str, ...]:
        together = "All rows of a person stay together, and a few of them can be that person's alone."
        return (
            "A text that one person alone asked leaves, with a name in it, if its letters keep the rule.",
            *([] if self.alone else [together]),
            "Columns that were kept and times are not covered.",
            ONE_RELEASE,
        )
