"""`queryveil anonymize METHOD LOG -o DIR`: one subcommand per method, a file each."""

from queryveil.cli.anonymize.app import app

__all__ = ["app"]
