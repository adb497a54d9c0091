"""The secret beside a store: whole or not there, and its owner's alone."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from queryveil.errors import BadFile
from queryveil.service.settings import read_or_make_key


def test_a_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "state.db.key"
    with ThreadPoolExecutor(8) as threads:
        keys = set(threads.map(lambda _: read_or_make_key(path), range(8)))
    assert keys == {path.read_bytes()}
    assert len(keys.pop()) == 32
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.slow
def test_a_key_that_cannot_be_written_leaves_no_file_behind(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="the key cannot be written"):
        read_or_make_key(tmp_path / "nosuch" / "state.db.key")
    # A disk that is full: the file may be made, and not be written to.
    command = f"""
import resource, signal
from pathlib import Path
from queryveil.service.settings import read_or_make_key
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (8, 8))
read_or_make_key(Path({str(tmp_path / "state.db.key")!r}))
"""

    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=False)
    assert "the key cannot be written" in done.stderr
    assert list(tmp_path.iterdir()) == []
