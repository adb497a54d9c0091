from datetime import datetime
from pathlib import Path

import pytest

from queryveil.errors import BadRows
from queryveil.formats import read_log

SECOND = datetime(2024, 5, 1, 10, 20, 30)


def _read(folder: Path, *times: str) -> tuple[list[datetime | None], str | None]:
    path = folder / "log.csv"
    path.write_text("user,query,time\n" + "".join(f'7,kettle,"{time}"\n' for time in times))
    log = read_log(path)
    return log.frame["time"].to_list(), log.layout.time_format


@pytest.mark.parametrize(
    ("text", "time", "time_format"),
    [
        ("2024-05-01 10:20:30", SECOND, "%Y-%m-%d %H:%M:%S"),
        ("2024-05-01T10:20:30", SECOND, "iso"),
        ("2024-05-01T10:20:30Z", SECOND, "iso_z"),
        ("2024-05-01 10:20:30+02:00", datetime(2024, 5, 1, 8, 20, 30), "iso_z"),
        ("2024-05-01T10:20:30-0530", datetime(2024, 5, 1, 15, 50, 30), "iso_z"),
        ("2024-05-01T10:20:30+02", datetime(2024, 5, 1, 8, 20, 30), "iso_z"),
        ("2024-05-01T10:20:30.25", SECOND.replace(microsecond=250_000), "iso"),
        ("2024-05-01T10:20:30.123456789Z", SECOND.replace(microsecond=123_456), "iso_z"),
        ("2024-05-01T10:20", SECOND.replace(second=0), "iso"),
        ("2024-05-01", datetime(2024, 5, 1), "%Y-%m-%d"),
        ("2024-02-29", datetime(2024, 2, 29), "%Y-%m-%d"),
        ("1714558830", SECOND, "epoch_s"),
        ("1714558830.5", SECOND.replace(microsecond=500_000), "epoch_s"),
        ("1714558830250", SECOND.replace(microsecond=250_000), "epoch_ms"),
        ("1714558830250001", SECOND.replace(microsecond=250_001), "epoch_us"),
        ("0001-01-01", datetime(1, 1, 1), "%Y-%m-%d"),
        ("9999-12-31T23:59:59.999999", datetime.max, "iso"),
    ],
)
def test_each_way_of_writing_a_time_is_read_and_remembered(
    tmp_path: Path, text: str, time: datetime, time_format: str
) -> None:
    assert _read(tmp_path, text) == ([time], time_format)


@pytest.mark.parametrize(
    "text",
    [
        *("2023-02-29", "2024-13-01", "2024-00-01", "2024-04-31", "2024-05-01T", "2024-05-01T10", "2024-05-01T10:20:3"),
        *("2024-05-01T10:60", "2024-05-01T10:20:61", "2024-05-01T10:20:30.", "2024-05-01T10:20:30+2", "20240501"),
        *("2024-05-01T10:20:30 CET", "2024-05-01T10:20:30+25:00", "0", "-5", "12", "1714558830.x", "1e9", "5/1/2024"),
        # In UTC these lie in the years 10000 and 0, which Python has not.
        *(
            "9999-12-31T23:59:59-01:00",
            "0001-01-01T00:30:00+01:00",
            "0000-01-01",
            "10000-01-01",
            "10000-01-01T00:00:00Z",
        ),
        *("2024-05-01T10:20:30Zx", "99999999999999999999", "2024-1-1 0:0:0", "١٧١٤٥٥٨٨٣٠"),
    ],
)
def test_what_is_not_a_time_is_a_bad_row(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadRows, match="line 2: the time cannot be read"):
        _read(tmp_path, text)


def test_a_missing_time_is_null(tmp_path: Path) -> None:
    assert _read(tmp_path, "", "  ") == ([None, None], None)


def test_mixed_ways_become_one_that_loses_nothing(tmp_path: Path) -> None:
    assert _read(tmp_path, "2024-05-01", "2024-05-01 10:20:30")[1] == "%Y-%m-%d %H:%M:%S"
    assert _read(tmp_path, "2024-05-01", "1714558830")[1] == "iso"
    assert _read(tmp_path, "2024-05-01", "2024-05-01T10:20:30Z")[1] == "iso_z"
