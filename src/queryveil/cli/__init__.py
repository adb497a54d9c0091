"""The command line: one file per verb; each parses, calls one function and prints."""

from queryveil.cli.app import app, main

__all__ = ["app", "main"]
