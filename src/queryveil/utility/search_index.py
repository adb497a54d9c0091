"""A corpus in a search engine (tantivy), and its documents as vectors of the engine's own tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from queryveil.errors import MissingExtra
from queryveil.kernels.arrays import Floats, Int32s, Int64s
from queryveil.progress import step
from queryveil.utility.corpus import Corpus, read_corpus

try:
    import tantivy
except ImportError:
    tantivy = None  # type: ignore[assignment]

_BUFFER_BYTES = 64_000_000


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class SearchIndex:
    """An index that answers queries with documents, best first.

    Text is split at everything that is no letter or digit, written in lower case, freed of English stop words and
    stemmed. Document d has the distinct tokens `tokens[doc_ptr[d]:doc_ptr[d + 1]]` with tf-idf `weights`,
    (1 + ln tf) * (1 + ln((1 + n) / (1 + df))), scaled to length 1.
    """

    doc_ptr: Int64s
    tokens: Int32s
    weights: Floats
    vocabulary: dict[str, int]
    engine: _Engine

    @classmethod
    def of(cls, corpus: Corpus | None = None) -> SearchIndex:
        """Index a corpus in memory; without one, the corpus of the package."""
        if tantivy is None:
            raise MissingExtra("personalised search", extra="search")
        documents = corpus or read_corpus()
        texts = [f"{title}\n{text}" for title, text in zip(documents.titles, documents.texts, strict=True)]
        engine = _Engine(texts)
        vocabulary: dict[str, int] = {}
        ptr = np.zeros(len(texts) + 1, np.int64)
        tokens: list[int] = []
        counts: list[int] = []
        for number, text in enumerate(texts):
            tally = Counter(engine.split(text))
            tokens += [vocabulary.setdefault(token, len(vocabulary)) for token in tally]
            counts += tally.values()
            ptr[number + 1] = len(tokens)
        codes = np.array(tokens, np.int32)
        weights = _unit_rows(ptr, codes, np.array(counts, np.float64), n_tokens=len(vocabulary))
        return cls(doc_ptr=ptr, tokens=codes, weights=weights, vocabulary=vocabulary, engine=engine)

    @property
    def n_documents(self) -> int:
        """The number of documents."""
        return len(self.doc_ptr) - 1

    @property
    def n_tokens(self) -> int:
        """The number of distinct tokens."""
        return len(self.vocabulary)

    def tokens_of(self, term: str) -> list[int]:
        """Give the tokens of a word or phrase that occur in the corpus.

        >>> from queryveil.utility.corpus import Corpus
        >>> index = SearchIndex.of(Corpus(ids=("1",), titles=("",), texts=("kittens and pups",)))
        >>> index.tokens_of("Kitten"), index.tokens_of("two pups and a kitten"), index.tokens_of("and a horse")
        ([0], [1, 0], [])
        """
        return [self.vocabulary[token] for token in self.engine.split(term) if token in self.vocabulary]

    def search(self, terms: Iterable[str], *, limit: int) -> Int32s:
        """Give the documents that have at least one of the words, `limit` at most, by BM25, the best first."""
        return self.engine.find([token for term in terms for token in self.engine.split(term)], limit=limit)

    def __repr__(self) -> str:
        return f"SearchIndex(n_documents={self.n_documents}, n_tokens={self.n_tokens})"


class _Engine:
    """All that is tantivy's."""

    def __init__(self, texts: Iterable[str]) -> None:
        texts = list(texts)
        filters = [
            tantivy.Filter.remove_long(100),
            tantivy.Filter.lowercase(),
            tantivy.Filter.stopword("english"),
            tantivy.Filter.stemmer("english"),
        ]
        builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        for each in filters:
            builder = builder.filter(each)
        self._analyzer = builder.build()
        fields = tantivy.SchemaBuilder()
        fields.add_text_field("text", tokenizer_name="english", index_option="freq")
        fields.add_integer_field("number", stored=True)
        self._schema = fields.build()
        self._index = tantivy.Index(self._schema)
        self._index.register_tokenizer("english", self._analyzer)
        # One thread: documents are numbered in their order, and equal scores come in the order of the corpus.
        writer = self._index.writer(heap_size=_BUFFER_BYTES, num_threads=1)
        for number, text in enumerate(texts):
            writer.add_document(tantivy.Document(text=text, number=number))
            if number % 1000 == 0:
                step("indexing the corpus", number / len(texts))
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()
        self._searcher = self._index.searcher()
        everything = self._searcher.search(tantivy.Query.all_query(), max(1, len(texts))).hits
        self._number_of = {_place(at): self._searcher.doc(at)["number"][0] for _, at in everything}

    def split(self, text: str) -> list[str]:
        """Give the tokens of a text."""
        return list(self._analyzer.analyze(text))

    def find(self, tokens: Iterable[str], *, limit: int) -> Int32s:
        """Give the documents that have one of the tokens, the best first."""
        wanted = [
            (tantivy.Occur.Should, tantivy.Query.term_query(self._schema, "text", token, "freq"))
            for token in dict.fromkeys(tokens)
        ]
        hits = self._searcher.search(tantivy.Query.boolean_query(wanted), limit, count=False).hits if wanted else []
        return np.array([self._number_of[_place(at)] for _, at in hits], np.int32)


def _place(address: Any) -> tuple[int, int]:
    return address.segment_ord, address.doc


def _unit_rows(ptr: Int64s, tokens: Int32s, counts: Floats, *, n_tokens: int) -> Floats:
    n_documents = len(ptr) - 1
    frequency = np.bincount(tokens, minlength=n_tokens)
    weights = (1 + np.log(counts)) * (1 + np.log((1 + n_documents) / (1 + frequency)))[tokens]
    owner = np.repeat(np.arange(n_documents), np.diff(ptr))
    length = np.sqrt(np.bincount(owner, weights=weights**2, minlength=n_documents))
    return np.asarray(weights / length[owner], np.float64)
