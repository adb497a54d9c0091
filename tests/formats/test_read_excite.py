from datetime import datetime
from pathlib import Path

import pytest

from queryveil.errors import BadRows
from queryveil.formats import Format, read_log


def test_excite_is_known_by_its_three_columns(tmp_path: Path) -> None:
    path = tmp_path / "day.log"
    path.write_text("A1\t970916105432\tgreen kettle\nA2\t970916105433\t\n")
    log = read_log(path)
    assert log.layout.format is Format.EXCITE
    assert log.frame.rows() == [
        ("A1", "green kettle", datetime(1997, 9, 16, 10, 54, 32)),
        ("A2", "", datetime(1997, 9, 16, 10, 54, 33)),
    ]


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("690101000000", datetime(1969, 1, 1)),
        ("681231235959", datetime(2068, 12, 31, 23, 59, 59)),
        ("9709161054", datetime(1997, 9, 16, 10, 54)),
        ("20060301071712", datetime(2006, 3, 1, 7, 17, 12)),
    ],
)
def test_two_digit_years_begin_with_1969(tmp_path: Path, text: str, time: datetime) -> None:
    path = tmp_path / "day.log"
    path.write_text(f"A1\t{text}\tgreen kettle\n")
    assert read_log(path).frame["time"].item() == time


@pytest.mark.parametrize("text", ["97091610543", "971316105432", "970916250000", "noon"])
def test_an_unreadable_time_of_excite_is_a_bad_row(tmp_path: Path, text: str) -> None:
    path = tmp_path / "day.log"
    path.write_text(f"A1\t{text}\tgreen kettle\n")
    with pytest.raises(BadRows, match="line 1: the time cannot be read"):
        read_log(path, format="excite")
