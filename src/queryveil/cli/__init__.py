"""The command line: one file per verb; each parses, calls one function and prints."""

from __future__ import annotations

from queryveil.cli.app import app, main

__all__ = ["app", "main"]
