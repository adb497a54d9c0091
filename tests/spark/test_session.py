from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from queryveil.spark import Spark, session

LOOPBACK = {"0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F"}
"""127.0.0.1, ::1 and the former in six, as the system writes them."""
LISTENS = "0A"


def listening(pid: int) -> Iterator[str]:
    """Return the addresses that a process listens on, by what the system says of its sockets."""
    links = [str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()]
    own = {link[8:-1] for link in links if re.fullmatch(r"socket:\[\d+\]", link)}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENS and fields[9] in own:
                yield fields[1].partition(":")[0]


@pytest.mark.skipif(not Path("/proc/self/net/tcp").exists(), reason="the system does not tell of sockets")
def test_on_this_machine_spark_listens_to_nobody_else(engine: Spark) -> None:
    gateway = engine.session.sparkContext._gateway
    assert gateway is not None
    addresses = list(listening(gateway.proc.pid))
    assert len(addresses) >= 2
    assert set(addresses) <= LOOPBACK


def test_rows_lie_where_only_their_owner_may_look(engine: Spark) -> None:
    folder = Path(engine.session.sparkContext.getConf().get("spark.local.dir") or "")
    assert folder.is_dir()
    assert folder.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("environment", "master", "is_local"),
    [
        ({}, None, True),
        ({}, "local[2]", True),
        ({}, "local-cluster[2,1,1024]", True),
        ({}, "spark://127.0.0.1:7077", False),
        # A Spark of one's own may have a master in its files.
        ({"SPARK_HOME": "/opt/spark"}, None, False),
        ({"SPARK_HOME": "/opt/spark"}, "local[*]", True),
        ({"SPARK_ENV_LOADED": "1"}, None, False),
        ({"SPARK_CONF_DIR": "/etc/spark"}, None, False),
        ({"SPARK_CONF_DIR": "/etc/spark"}, "local[2]", True),
    ],
)
def test_what_is_set_for_this_machine_is_not_set_for_a_cluster(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], master: str | None, is_local: bool
) -> None:
    ours = ("SPARK_LOCAL_IP", "SPARK_LOCAL_HOSTNAME", "PYSPARK_PYTHON")
    for name in ("SPARK_HOME", "SPARK_ENV_LOADED", "SPARK_CONF_DIR", "SPARK_LOCAL_DIRS", *ours):
        # Set first, so that it is put back as it was, whatever happens inside.
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    settings = session._settings(master)
    assert ("spark.local.dir" in settings) == is_local
    assert [os.environ.get(name) for name in ours] == (
        ["127.0.0.1", "localhost", sys.executable] if is_local else [None, None, None]
    )
