from pathlib import Path

import pytest

from queryveil.formats import Format, read_log, write_log

DATA = Path(__file__).resolve().parents[2] / ".." / "shared" / "data"

pytestmark = [pytest.mark.slow, pytest.mark.real_data]


def _real(name: str) -> Path:
    if not (DATA / name).exists():
        pytest.skip(f"{name} is not beside the checkout")
    return DATA / name


def test_the_excite_log_is_read_whole(tmp_path: Path) -> None:
    path = _real("excite-small.log")
    log = read_log(path)
    assert log.layout.format is Format.EXCITE
    assert (log.n_rows, log.n_users) == (4501, 891)
    assert int((log.frame["query"] == "").sum()) == 533
    assert log.frame["time"].dt.year().unique().to_list() == [1997]
    write_log(log, tmp_path / "again.log")
    assert (tmp_path / "again.log").read_bytes() == path.read_bytes()


def test_the_ubi_log_is_read_whole(tmp_path: Path) -> None:
    log = read_log(_real("ubi-sample.ndjson"))
    assert log.layout.format is Format.UBI
    assert log.n_users == 215
    assert log.frame.select("user", "query", "time").unique().height <= 473 <= log.n_rows
    assert log.frame["time"].null_count() == 0
    write_log(log, tmp_path / "again.ndjson")
    assert read_log(tmp_path / "again.ndjson").frame.equals(log.frame)
