"""A directory of people, read from a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from queryveil.attacks.attacker import Person, read_people
from queryveil.errors import BadFile
from queryveil.synthesis import synthesize, write_synthetic


def written(path: Path, *lines: str | bytes) -> Path:
    file = path / "people.jsonl"
    file.write_bytes(b"\n".join(line if isinstance(line, bytes) else line.encode() for line in lines))
    return file


def test_the_secrets_of_a_made_up_log_are_people(tmp_path: Path) -> None:
    made = synthesize(users=50, seed=3)
    write_synthetic(made, tmp_path / "log.parquet")
    people = read_people(tmp_path / "log.parquet.secrets.jsonl")
    assert people == tuple(Person(name=each.name, town=each.town, user=each.user) for each in made.secrets)


def test_users_may_be_left_out_and_other_fields_are_ignored(tmp_path: Path) -> None:
    file = written(
        tmp_path, '{"name": "Ada Poe", "town": "Ulm", "age": 7}', "", '{"town":"Łódź","name":"Ib","user":"u1"}\r'
    )
    assert read_people(str(file)) == (
        Person(name="Ada Poe", town="Ulm"),
        Person(name="Ib", town="Łódź", user="u1"),
    )


def test_an_empty_file_has_nobody_and_a_byte_order_mark_is_no_letter(tmp_path: Path) -> None:
    assert read_people(written(tmp_path, "")) == ()
    assert len(read_people(written(tmp_path, b'\xef\xbb\xbf{"name": "Ada", "town": "Ulm"}'))) == 1


@pytest.mark.parametrize(
    "line",
    [
        '{"name": "kestrel"}',
        '{"name": "kestrel", "town": 7}',
        '{"name": "kestrel", "town": "lantern"',
        '{"name": "kestrel", "town": "?"}',
        '{"name": " ", "town": "lantern"}',
        '{"name": "kestrel", "town": "lantern", "user": 17}',
        "kestrel,lantern",
        '["kestrel", "lantern"]',
        b'{"name": "kestrel\xff", "town": "lantern"}',
        "[" * 5000,
    ],
)
def test_a_line_that_is_no_person_is_one_clear_line_without_its_text(tmp_path: Path, line: str | bytes) -> None:
    file = written(tmp_path, '{"name": "Ada", "town": "Ulm"}', line)
    with pytest.raises(BadFile) as caught:
        read_people(file)
    message = str(caught.value)
    assert message.startswith("people.jsonl: line 2 is no person; each is one line such as")
    assert "\n" not in message
    assert "kestrel" not in message
    assert "lantern" not in message
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_a_file_that_is_not_there_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="cannot be read: No such file"):
        read_people(tmp_path / "nobody.jsonl")


def test_no_repr_shows_a_name() -> None:
    assert repr(Person(name="kestrel", town="lantern", user="u1")) == "Person(...)"
