"""A corpus in a search engine (tantivy), and its documents as vectors of the engine's own tokens."""

import gzip
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from queryveil.data import Floats, Int32s
from queryveil.data.rows import Rows
from queryveil.errors import BadFile, MissingExtra
from queryveil.progress import step

PACKAGED = "glosses.jsonl.gz"  # glosses of WordNet by topic, in queryveil/utility/data; made by tools/build_corpus.py

_ENDINGS = (".jsonl", ".ndjson", ".json")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Corpus:
    """Documents: `ids`, `titles` (which may be empty) and `texts`.

    >>> read_corpus()
    Corpus(n_documents=2943)
    """

    ids: tuple[str, ...]
    titles: tuple[str, ...]
    texts: tuple[str, ...]

    @property
    def n_documents(self) -> int:
        """The number of documents."""
        return len(self.texts)

    def __repr__(self) -> str:
        # Privacy: a corpus may be somebody's mail.
        return f"Corpus(n_documents={self.n_documents})"


class _Document(msgspec.Struct, kw_only=True):
    text: str
    id: str | int = ""
    title: str = ""


def read_corpus(source: str | Path | None = None) -> Corpus:
    """Read a folder of `.txt` files, or a file of JSON lines with `text` and perhaps `id` and `title`.

    Folders are searched to the bottom; JSON lines may be compressed with gzip. Without a source: the corpus of the
    package, which is WordNet's glosses by topic.
    """
    if source is None:
        with resources.as_file(resources.files("queryveil.utility").joinpath("data", PACKAGED)) as packaged:
            return _corpus(_json_lines(packaged), name=PACKAGED)
    path = Path(source)
    if path.is_dir():
        return _corpus(_text_files(path), name=str(path))
    if not path.exists():
        raise BadFile(str(path), "there is no such file or folder")
    if path.name.lower().removesuffix(".gz").endswith(_ENDINGS):
        return _corpus(_json_lines(path), name=path.name)
    raise BadFile(path.name, "a corpus is a folder of .txt files or a file of JSON lines (.jsonl, .jsonl.gz)")


def _corpus(documents: Iterator[_Document], *, name: str) -> Corpus:
    found = list(documents)
    if not any(document.text.strip() for document in found):
        raise BadFile(name, "no documents with text in it; give .txt files or JSON lines with text")
    return Corpus(
        ids=tuple(str(document.id) or str(number) for number, document in enumerate(found, start=1)),
        titles=tuple(document.title for document in found),
        texts=tuple(document.text for document in found),
    )


def _text_files(folder: Path) -> Iterator[_Document]:
    for path in sorted(folder.rglob("*.txt")):
        if path.is_file():
            name = path.relative_to(folder).as_posix()
            try:
                text = _read(path, name=name).decode("utf-8-sig")
            except UnicodeDecodeError:
                raise BadFile(name, "the text is not UTF-8; convert it") from None
            yield _Document(id=name, title=path.stem, text=text)


def _json_lines(path: Path) -> Iterator[_Document]:
    decoder = msgspec.json.Decoder(_Document)
    for number, line in enumerate(_read(path, name=path.name).removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            document = decoder.decode(line)
        except UnicodeDecodeError:
            raise BadFile(path.name, f"line {number} is not UTF-8; convert the file") from None
        except (msgspec.MsgspecError, RecursionError):
            # Privacy: the cause may quote the line, so it is dropped.
            reason = f"line {number} is not a JSON object with a text; it needs text, id and title are optional"
            raise BadFile(path.name, reason) from None
        yield document


def _read(path: Path, *, name: str) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadFile(name, f"cannot be read: {(error.strerror or type(error).__name__).lower()}") from None
    if path.suffix.lower() != ".gz":
        return content
    try:
        return gzip.decompress(content)
    except EOFError:
        raise BadFile(name, "the gzip data ends in the middle; copy the file again") from None
    except (OSError, zlib.error):
        raise BadFile(name, "the gzip data is damaged, or it is not gzip; copy the file again") from None


try:
    import tantivy
except ImportError:
    tantivy = None  # type: ignore[assignment]

_BUFFER_BYTES = 64_000_000


class SearchIndex:
    """An index that answers queries with documents, best first.

    Text is split at everything that is no letter or digit, written in lower case, freed of English stop words and
    stemmed. Attributes are `vocabulary`, the numbers of the tokens, `doc_tokens`, the distinct tokens of each document,
    and `weights`, the tf-idf of each of them, (1 + ln tf) * (1 + ln((1 + n) / (1 + df))), scaled to length 1.

    - `corpus`: what is indexed, in memory.
    """

    def __init__(self, corpus: Corpus) -> None:
        texts = [f"{title}\n{text}" for title, text in zip(corpus.titles, corpus.texts, strict=True)]
        self._analyzer = _analyzer()
        self.vocabulary: dict[str, int] = {}
        tallies = [Counter(self._split(text)) for text in texts]
        numbers = [[self.vocabulary.setdefault(token, len(self.vocabulary)) for token in tally] for tally in tallies]
        self.doc_tokens = Rows.from_lists(numbers)
        counts = np.array([n for tally in tallies for n in tally.values()], np.float64)
        self.weights = _unit_weights(self.doc_tokens, counts, n_tokens=len(self.vocabulary))
        self._index_texts(texts)

    @classmethod
    def of(cls, corpus: Corpus | None = None) -> "SearchIndex":
        """Index a corpus in memory; without one, the corpus of the package, which is indexed once in a process."""
        if tantivy is None:
            raise MissingExtra("personalised search", extra="search")
        return _packaged_index() if corpus is None else cls(corpus)

    def _index_texts(self, texts: list[str]) -> None:
        fields = tantivy.SchemaBuilder()
        fields.add_text_field("text", tokenizer_name="english", index_option="freq")
        fields.add_integer_field("number", stored=True)
        self._schema = fields.build()
        index = tantivy.Index(self._schema)
        index.register_tokenizer("english", self._analyzer)
        # One thread: documents are numbered in their order, and equal scores come in the order of the corpus.
        writer = index.writer(heap_size=_BUFFER_BYTES, num_threads=1)
        for number, text in enumerate(texts):
            writer.add_document(tantivy.Document(text=text, number=number))
            if number % 1000 == 0:
                step("indexing the corpus", number / len(texts))
        writer.commit()
        writer.wait_merging_threads()
        index.reload()
        self._searcher = index.searcher()
        everything = self._searcher.search(tantivy.Query.all_query(), max(1, len(texts))).hits
        self._number_of = {_place(at): self._searcher.doc(at)["number"][0] for _, at in everything}

    @property
    def n_documents(self) -> int:
        """The number of documents."""
        return self.doc_tokens.n_rows

    @property
    def n_tokens(self) -> int:
        """The number of distinct tokens."""
        return len(self.vocabulary)

    def tokens_of(self, term: str) -> list[int]:
        """Return the tokens of a word or phrase that occur in the corpus.

        >>> index = SearchIndex.of(Corpus(ids=("1",), titles=("",), texts=("kittens and pups",)))
        >>> index.tokens_of("Kitten"), index.tokens_of("two pups and a kitten"), index.tokens_of("and a horse")
        ([0], [1, 0], [])
        """
        return [self.vocabulary[token] for token in self._split(term) if token in self.vocabulary]

    def search(self, terms: Iterable[str], *, limit: int) -> Int32s:
        """Return the documents that have at least one of the words, `limit` at most, by BM25, the best first."""
        tokens = dict.fromkeys(token for term in terms for token in self._split(term))
        queries = (tantivy.Query.term_query(self._schema, "text", token, "freq") for token in tokens)
        wanted = [(tantivy.Occur.Should, query) for query in queries]
        hits = self._searcher.search(tantivy.Query.boolean_query(wanted), limit, count=False).hits if wanted else []
        return np.array([self._number_of[_place(at)] for _, at in hits], np.int32)

    def _split(self, text: str) -> list[str]:
        return list(self._analyzer.analyze(text))

    def __repr__(self) -> str:
        return f"SearchIndex(n_documents={self.n_documents}, n_tokens={self.n_tokens})"


@cache
def _packaged_index() -> SearchIndex:
    return SearchIndex(read_corpus())


def _analyzer() -> Any:
    kinds = tantivy.Filter
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    for each in (kinds.remove_long(100), kinds.lowercase(), kinds.stopword("english"), kinds.stemmer("english")):
        builder = builder.filter(each)
    return builder.build()


def _place(address: Any) -> tuple[int, int]:
    return address.segment_ord, address.doc


def _unit_weights(tokens: Rows[np.int32], counts: Floats, *, n_tokens: int) -> Floats:
    n_documents, owner = tokens.n_rows, tokens.row_of_entry
    frequency = np.bincount(tokens.values, minlength=n_tokens)
    weights = (1 + np.log(counts)) * (1 + np.log((1 + n_documents) / (1 + frequency)))[tokens.values]
    length = np.sqrt(np.bincount(owner, weights=weights**2, minlength=n_documents))
    return np.asarray(weights / length[owner], np.float64)
