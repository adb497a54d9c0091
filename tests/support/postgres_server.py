"""A real PostgreSQL server on a free port of this machine, for tests."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.support.redis_server import free_port
from tests.support.waiting import until

_PASSWORD = "open-the-door"
_FOLDERS = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: int(folder.parent.name.split(".")[0]))


def _account() -> str | None:
    """Return the account to run as: the server refuses root."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres").pw_name
    except KeyError:
        return pwd.getpwnam("nobody").pw_name


def _program(name: str) -> str | None:
    return str(_FOLDERS[-1] / name) if _FOLDERS else shutil.which(name)


def _place() -> str | None:
    """Return the folder of all servers, None for the one of the tests where others than root may enter that."""
    place = Path(tempfile.gettempdir()).resolve()
    is_open = all(folder.stat().st_mode & 0o001 for folder in (place, *place.parents))
    return None if _account() is None or is_open else "/tmp"


IS_INSTALLED = _program("postgres") is not None and _program("initdb") is not None


class PostgresServer:
    """A server with everything in a folder of its own; it can be killed and started again."""

    def __init__(self) -> None:
        self.port = free_port()
        self._folder = Path(tempfile.mkdtemp(prefix="postgres-", dir=_place()))
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> PostgresServer:
        """Make the database and start the server."""
        (self._folder / "password").write_text(_PASSWORD)
        account = _account()
        if account is not None:
            shutil.chown(self._folder, user=account)
            shutil.chown(self._folder / "password", user=account)
        where = ["-D", str(self._folder / "data"), "-U", "keeper", "-E", "UTF8", "--locale=C", "--no-sync"]
        self._run("initdb", *where, "-A", "scram-sha-256", f"--pwfile={self._folder / 'password'}").wait()
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it and remove its folder."""
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self, name: str, *words: str) -> subprocess.Popen[bytes]:
        program = _program(name)
        assert program is not None
        account = _account()
        return subprocess.Popen(
            [program, *words],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            user=account,
            group=pwd.getpwnam(account).pw_gid if account else None,
            extra_groups=[] if account else None,
        )

    def url(self, schema: str = "queryveil", *, password: str = _PASSWORD, database: str = "postgres") -> str:
        """Return the address of a schema on it."""
        return f"postgresql://keeper:{password}@127.0.0.1:{self.port}/{database}?schema={schema}"

    def client(self) -> Any:
        """Return a connection; close it after use."""
        import psycopg

        return psycopg.connect(self.url().partition("?")[0], autocommit=True)

    def start(self) -> None:
        """Start it on the folder as it is, and wait until it answers."""
        import psycopg

        words = ["-D", str(self._folder / "data"), "-p", str(self.port), "-c", "unix_socket_directories="]
        words += ["-c", "listen_addresses=127.0.0.1", "-c", "shared_buffers=16MB"]

        def answers() -> bool:
            # After a crash the old processes may still end; until then a new server refuses to start.
            if self._process is None or self._process.poll() is not None:
                self._process = self._run("postgres", *words)
            with suppress(psycopg.OperationalError):
                self.client().close()
                return True
            return False

        until(answers)

    def kill(self) -> None:
        """End it without a warning, as a crash does."""
        process, self._process = self._process, None
        if process is None:
            return
        # Its children would go on for a moment, and answer.
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        numbers = [int(number) for number in children.read_text().split()] if children.exists() else []
        process.kill()
        for number in numbers:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        process.wait()
