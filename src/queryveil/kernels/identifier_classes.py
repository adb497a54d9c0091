"""What a word of a query may be, as far as the rules for identifiers care; a word of none is known to no table."""

from __future__ import annotations

from typing import Final

SURNAME_ENDS: Final = (
    "ulos", "ulou", "akis", "vich", "wicz", "enko", "sson", "ssen", "dsen", "ttir", "moto", "escu", "oglu", "vili",
    "wski", "nski", "lski", "czyk", "vska", "nska", "wska",
)  # fmt: skip
"""How words end that no table knows and that are surnames all the same."""
WORD: Final = 1
"""Stands in the English dictionary, names of people and brands among them."""
FIRST: Final = 2
"""A first name, and hardly anything else."""
FIRST_WORD: Final = 4
"""A first name that is a word as well: grace, mark, jordan."""
SURNAME: Final = 8
SURNAME_WORD: Final = 16
"""A surname that is a word as well: king, black, stone."""
COMMON_SURNAME: Final = 32
"""A surname that many bear."""
TITLE: Final = 64
"""Stands before a surname: dr, mrs."""
PERSON: Final = 128
"""Is asked about people: obituary, attorney, myspace."""
CITY_END: Final = 256
"""The last word of the name of an American city."""
STATE_END: Final = 512
"""An American state: the last word of its name, or its two letters."""
SMALL_TOWN: Final = 1024
"""A name that only small American towns have."""
CUE: Final = 2048
"""Tells what a number beside it is: account, mrn, march, street."""
PLACE_CUE: Final = 4096
"""Makes a place of the word before it: county."""
PARTICLE: Final = 8192
"""Stands between a first name and a surname: van, de, and single letters."""
CONTACT_CUE: Final = 16384
"""Spells an address out: dot."""
