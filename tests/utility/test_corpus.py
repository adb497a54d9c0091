"""Corpora: the one in the package, folders of texts, JSON lines."""

from __future__ import annotations

import gzip
import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from queryveil.errors import BadFile
from queryveil.utility.search_index import PACKAGED, Corpus, read_corpus

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "src" / "queryveil" / "utility" / "data"
DEBIAN = Path("/usr/share/wordnet")


def the_builder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_corpus", ROOT / "tools" / "build_corpus.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def refusal(source: Path) -> str:
    with pytest.raises(BadFile) as caught:
        read_corpus(source)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_the_packaged_corpus_has_thousands_of_topics() -> None:
    corpus = read_corpus()
    assert corpus.n_documents > 2000
    assert len(set(corpus.ids)) == corpus.n_documents
    sizes = [text.count("\n") + 1 for text in corpus.texts]
    assert min(sizes) >= 10
    assert max(sizes) <= 30
    assert (SHIPPED / PACKAGED).stat().st_size < 2_000_000


def test_a_word_of_several_senses_stands_in_documents_of_different_topics() -> None:
    corpus = read_corpus()
    named = {
        title
        for title, text in zip(corpus.titles, corpus.texts, strict=True)
        for line in text.lower().split("\n")
        if "java" in line.partition(":")[0].split(", ")
    }
    assert named == {"island", "beverage", "programming language"}


def test_the_licence_stands_beside_the_corpus() -> None:
    ours, texts = (
        (ROOT / "src" / "queryveil" / part / "data" / "WORDNET-LICENSE.txt").read_bytes()
        for part in ("utility", "text")
    )
    assert ours == texts


@pytest.mark.slow
@pytest.mark.skipif(not (DEBIAN / "data.noun").is_file(), reason="Debian's wordnet-base is not installed")
def test_the_shipped_corpus_is_what_the_tool_builds(tmp_path: Path) -> None:
    the_builder().write(DEBIAN, to=tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {PACKAGED, "WORDNET-LICENSE.txt"}
    built, shipped = (tmp_path / PACKAGED).read_bytes(), (SHIPPED / PACKAGED).read_bytes()
    # The lines are compared, not the gzip bytes: builds of zlib compress differently. No time is in either header.
    assert gzip.decompress(built) == gzip.decompress(shipped)
    assert built[4:8] == shipped[4:8] == bytes(4)


def test_the_tool_cuts_a_small_wordnet_into_topics(tmp_path: Path) -> None:
    lines = ["  1 A licence.  ", "00000001 03 n 01 thing 0 000 | all there is  "]
    lines += [f"{i:08d} 06 n 02 lamp{i} 0 big_lamp{i} 0 001 @ 00000001 n 0000 | it shines; {i}  " for i in range(2, 36)]
    lines += ["00000090 18 n 01 Ottilie_Fernsby 0 001 @i 00000002 n 0000 | an inventor  "]
    lines += ["00000091 18 n 02 Fernsby 0 O._Fernsby 0 001 @i 00000002 n 0000 | an inventor  "]
    lines += ["00000092 06 n 01 night_light 0 001 @ 00000002 n 0000 | left out, it has no name of one word  "]
    (tmp_path / "data.noun").write_text("\n".join(lines) + "\n", encoding="ascii")
    assert the_builder().write(tmp_path, to=tmp_path / "out") == 2
    corpus = read_corpus(tmp_path / "out" / PACKAGED)
    assert corpus.titles == ("thing", "thing")
    assert [len(text.split("\n")) for text in corpus.texts] == [17, 18]
    assert corpus.texts[0].split("\n")[:2] == ["thing: all there is", "lamp2, big lamp2: it shines; 2"]
    assert "Fernsby" not in "".join(corpus.texts)


def test_a_folder_is_read_to_the_bottom_in_order(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "lamp.txt").write_text("a lamp shines", encoding="utf-8")
    (tmp_path / "apple.txt").write_text("\ufeffan äpple", encoding="utf-8")
    (tmp_path / "notes.md").write_text("not a document", encoding="utf-8")
    assert read_corpus(tmp_path) == Corpus(
        ids=("apple.txt", "b/lamp.txt"), titles=("apple", "lamp"), texts=("an äpple", "a lamp shines")
    )


@pytest.mark.parametrize("name", ["docs.jsonl", "docs.ndjson", "docs.jsonl.gz"])
def test_json_lines_need_a_text_and_may_have_an_id_and_a_title(tmp_path: Path, name: str) -> None:
    lines = [{"text": "a lamp", "id": 7, "title": "Lamp", "more": []}, {"text": "a pear"}]
    content = "\n\n".join(json.dumps(line) for line in lines).encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    assert read_corpus(tmp_path / name) == Corpus(ids=("7", "2"), titles=("Lamp", ""), texts=("a lamp", "a pear"))


def test_a_missing_corpus_is_a_clear_error(tmp_path: Path) -> None:
    assert refusal(tmp_path / "nowhere").endswith("nowhere: there is no such file or folder")


def test_a_folder_without_texts_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("not a document", encoding="utf-8")
    (tmp_path / "blank.txt").write_text(" \n", encoding="utf-8")
    assert "no documents with text in it" in refusal(tmp_path)


def test_a_text_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "latin.txt").write_bytes("äpple".encode("latin-1"))
    assert refusal(tmp_path) == "old/latin.txt: the text is not UTF-8; convert it"


@pytest.mark.parametrize(
    "line", [b'{"title": "zanzibar"}', b'{"text": 3}', b"zanzibar", b'["zanzibar"]', b'{"text": "zanzibar', b"[" * 9999]
)
def test_a_line_without_text_is_named_by_number_and_not_quoted(tmp_path: Path, line: bytes) -> None:
    (tmp_path / "docs.jsonl").write_bytes(b'{"text": "a lamp"}\n' + line)
    message = refusal(tmp_path / "docs.jsonl")
    assert message.startswith("docs.jsonl: line 2 is not a JSON object with a text")
    assert "zanzibar" not in message


def test_json_lines_that_are_not_utf8_are_named_by_number(tmp_path: Path) -> None:
    (tmp_path / "docs.jsonl").write_bytes('{"text": "äpple"}'.encode("latin-1"))
    assert "line 1 is not" in refusal(tmp_path / "docs.jsonl")


def test_damaged_gzip_is_a_clear_error(tmp_path: Path) -> None:
    whole = gzip.compress(b'{"text": "a lamp"}\n' * 100)
    for content, reason in (
        (whole[:-10], "the gzip data ends in the middle"),
        (whole[:12] + b"zz" + whole[14:], "the gzip data is damaged"),
        (b'{"text": "a lamp"}', "the gzip data is damaged, or it is not gzip"),
    ):
        (tmp_path / "docs.jsonl.gz").write_bytes(content)
        assert reason in refusal(tmp_path / "docs.jsonl.gz")


def test_another_kind_of_file_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "docs.pdf").write_bytes(b"%PDF")
    assert "a corpus is a folder of .txt files or a file of JSON lines" in refusal(tmp_path / "docs.pdf")


def test_the_repr_hides_the_texts() -> None:
    assert repr(Corpus(ids=("1",), titles=("lamp",), texts=("a lamp",))) == "Corpus(n_documents=1)"
