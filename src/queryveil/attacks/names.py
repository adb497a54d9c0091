"""What attackers are called: in plain words for people, and in short as they are typed and written to tables."""

from collections.abc import Mapping

from queryveil.attacks.attacker import Exposure
from queryveil.errors import BadParameter

TITLES: Mapping[str, str] = {
    "known_terms": "Search terms",
    "likely_terms": "Search terms, best guess",
    "counted_terms": "Search terms and their counts",
    "rare_pair": "Two or three terms together",
    "vanity": "A name and a town",
    "clock": "Times of queries",
    "clock_equals": "A day, among those with the same queries",
    "token_inversion": "Hashed terms undone",
    "membership": "Being in the log",
    "sybil": "Planted users",
    "sybil_early": "Users planted early",
    "added_rows": "Made-up rows told apart",
    "shared_term": "What a whole group shares",
    "repeats": "A query that one person repeats",
    "active_id": "All to the most active id",
    "fragments": "Texts of one person",
    "named_fragments": "Names in texts of one person",
    "stitch": "Rows without ids linked",
    "sensitive": "Sensitive subjects guessed",
    "later_log": "The same people a month later",
    "site_owner": "Visitors of a clicked page",
    "neighbour": "With and without a person",
    "shared_weight": "Terms of the same weight",
    "known_profile": "A further term of a known profile",
    "as_released": "Rows taken as they stand",
}
"""The plain names of attackers. One that is not listed is called by its name, without underscores."""
_BY_TIME = "+T"
"""The mark of those that sort by time."""


def base_name(attacker: str) -> str:
    """Return the name of an attacker without the mark of those that sort by time.

    >>> base_name("rebuild_2+T")
    'rebuild_2'
    """
    return attacker.removesuffix(_BY_TIME)


def name_title(name: str) -> str:
    """Return the title of an attacker by its name alone.

    >>> name_title("rebuild_2+T"), name_title("known_terms"), name_title("nosuch_thing")
    ('Exchange undone (2, by time)', 'Search terms', 'Nosuch thing')
    """
    if name.startswith("rebuild_"):
        by_time = ", by time" if name.endswith(_BY_TIME) else ""
        return f"Exchange undone ({base_name(name).removeprefix('rebuild_')}{by_time})"
    words = TITLES.get(name, name.replace("_", " "))
    return words[:1].upper() + words[1:]


def title(found: Exposure) -> str:
    """Return the title of an attacker with what it knows.

    >>> known = {"n_known": 4, "n_wrong": 2}
    >>> title(Exposure(attacker="known_terms", knows="", n_targets=9, n_found=1, n_by_chance=0, **known))
    '4 search terms and 2 wrong ones, only if sure'
    """
    guesses = {"known_terms": ", only if sure", "likely_terms": "", "counted_terms": " and their counts"}
    if found.attacker in guesses and found.n_known is not None:
        wrong = f" and {found.n_wrong} wrong ones" if found.n_wrong else ""
        return f"{found.n_known} search terms{wrong}{guesses[found.attacker]}"
    return name_title(found.attacker)


def label(found: Exposure) -> str:
    """Return an attacker in short, with how much it knows where that varies.

    >>> one = Exposure(attacker="known_terms", knows="", n_targets=9, n_found=1, n_by_chance=0, n_known=4)
    >>> label(one)
    'known_terms:4'
    """
    known = "" if found.n_known is None else f":{found.n_known}"
    return f"{found.attacker}{known}" + (f", {found.n_wrong} wrong" if found.n_wrong else "")


def split_label(text: str) -> tuple[str, int | None]:
    """Return the attacker and how much it knows.

    >>> split_label("known_terms:4"), split_label("clock")
    (('known_terms', 4), ('clock', None))
    """
    attacker, colon, number = text.partition(":")
    if colon and not (number.isascii() and number.isdigit()):
        raise BadParameter("exposure", text, allowed="an attacker and how much it knows, such as known_terms:4")
    return attacker, int(number) if number else None
