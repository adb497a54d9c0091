"""Tables and figures of papers, theirs beside ours: one driver, and one module for each paper."""

from queryveil.papers.driver import NAMES, Table, reproduce

__all__ = ["NAMES", "Table", "reproduce"]
