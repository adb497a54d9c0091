from pathlib import Path

import pytest

from queryveil.checks import verify
from queryveil.data import count_kinds
from queryveil.formats import Format, read_log, write_log
from queryveil.methods import Km
from queryveil.release import ColumnPolicy

DATA = Path(__file__).resolve().parents[2] / ".." / "shared" / "data"

EVENTS = {
    **{"impression": 1999, "click": 298, "global_click": 61, "search": 506, "add_to_cart": 234, "purchase": 6},
    "other": 344,
}
EVENTS_OF_QUERIES = {"impression": 1932, "click": 267, "search": 96, "add_to_cart": 207}

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
    assert (log.n_rows, log.n_users, log.frame["search"].n_unique()) == (473, 215, 284)
    assert log.frame["time"].null_count() == 0
    assert log.events is not None
    assert count_kinds(log.events) == EVENTS
    assert count_kinds(log.events.drop_nulls("search")) == EVENTS_OF_QUERIES
    assert log.reading.n_fields_left_out == 22_309
    write_log(log, tmp_path / "again.ndjson")
    again = read_log(tmp_path / "again.ndjson")
    assert again.frame.equals(log.frame)
    assert again.reading.n_fields_left_out == 0
    assert again.events is not None
    assert again.events.equals(log.events)


@pytest.mark.parametrize("keep", ["", "events", "url"])
def test_every_event_of_the_ubi_log_is_kept_or_counted(tmp_path: Path, keep: str) -> None:
    log = read_log(_real("ubi-sample.ndjson"))
    release = Km(k=3, m=1, columns=ColumnPolicy(keep=(keep,) if keep else ())).anonymize(log)
    counts = release.manifest.events
    assert counts is not None
    assert counts.before() == EVENTS
    assert counts.clicks_as_rows == (EVENTS_OF_QUERIES["click"] if keep == "url" else 0)
    assert counts.kept == count_kinds(release.log.events)
    assert bool(counts.kept) is (keep == "events")
    assert verify(release.save(tmp_path / "out"), original=log).holds
