"""Measures of utility: a release compared with its original."""

from queryveil.utility.kept import average_length, average_level, ggd, ncp
from queryveil.utility.measuring import measure
from queryveil.utility.personalised import PersonalisedSearch, SearchPrecision, personalised_search
from queryveil.utility.score import Measures, Score
from queryveil.utility.search_index import Corpus, SearchIndex, read_corpus

__all__ = ["Measures", "Score", "average_length", "average_level", "ggd", "measure", "ncp"]
__all__ += ["Corpus", "PersonalisedSearch", "SearchIndex", "SearchPrecision", "personalised_search", "read_corpus"]
