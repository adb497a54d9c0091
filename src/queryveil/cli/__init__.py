"""The command line: each command parses, calls one function and prints."""

from queryveil.cli.app import app, main

__all__ = ["app", "main"]
