"""Words that say nothing about a person's interests."""

from __future__ import annotations

from typing import Final

_WORDS = """
a an and are as at be but by for if in into is it no not of on or such that the their then there these they this to was
will with
"""

ENGLISH: Final = frozenset(_WORDS.split())
"""The 33 English stop words of Lucene's StandardAnalyzer."""
