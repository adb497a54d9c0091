"""A real Redis server on a free port of this machine, for tests and benchmarks."""

from __future__ import annotations

import shutil
import socket
import subprocess
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.support.waiting import until

IS_INSTALLED = shutil.which("redis-server") is not None


def free_port() -> int:
    """Return a port of this machine that nobody listens on just now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


class RedisServer:
    """A server that writes everything to disk at once, so that it can be killed and started again.

    `options` are more options of redis-server, such as ``("--maxmemory", "2mb")``.
    """

    def __init__(self, folder: Path, *, options: tuple[str, ...] = (), password: str | None = None) -> None:
        self.folder, self.options, self.password = folder, options, password
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> RedisServer:
        """Start it."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        self.kill()

    def url(self, **options: str | int) -> str:
        """Return the address of a stream on it."""
        return f"redis://127.0.0.1:{self.port}/0?" + "&".join(f"{name}={text}" for name, text in options.items())

    def client(self) -> Any:
        """Return a client; close it after use."""
        import redis

        return redis.Redis(port=self.port, password=self.password, protocol=2)

    def seconds_of_work(self) -> float:
        """Return the seconds that the server has kept a core busy."""
        with self.client() as client:
            used = client.info("cpu")
        return float(used["used_cpu_sys"]) + float(used["used_cpu_user"])

    def start(self) -> None:
        """Start it on the folder as it is, and wait until it answers."""
        import redis

        words = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder), "--save", ""]
        words += ["--appendonly", "yes", "--appendfsync", "always", "--loglevel", "warning", *self.options]
        words += [] if self.password is None else ["--requirepass", self.password]
        self._process = subprocess.Popen(["redis-server", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with self.client() as client:

            def answers() -> bool:
                with suppress(redis.RedisError):
                    return bool(client.ping())
                return False

            until(answers, process=self._process)

    def kill(self) -> None:
        """End it without a warning, as a crash does."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
