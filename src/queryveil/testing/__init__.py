"""What the tests of queryveil use and authors of further methods may use too."""

from __future__ import annotations

from queryveil.testing.logs import log_of, tiny_log

__all__ = ["log_of", "tiny_log"]
