"""Tables and figures of papers, theirs beside ours; one file for each."""

from queryveil.papers.driver import NAMES, reproduce
from queryveil.papers.table import Table

__all__ = ["NAMES", "Table", "reproduce"]
