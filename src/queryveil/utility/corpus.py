"""Documents to search: those in the package, a folder of text files, or JSON lines."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import msgspec

from queryveil.errors import BadFile

PACKAGED = "glosses.jsonl.gz"
"""Glosses of WordNet by topic, in queryveil/utility/data; made by tools/build_corpus.py."""

_ENDINGS = (".jsonl", ".ndjson", ".json")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Corpus:
    """Documents: an id, a title that may be empty, and a text for each.

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
            raise BadFile(
                path.name, f"line {number} is not a JSON object with a text; it needs text, id and title are optional"
            ) from None
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
