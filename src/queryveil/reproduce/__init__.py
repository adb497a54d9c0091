"""Tables and figures of papers, theirs beside ours; one file for each.

`queryveil.reproduce("km-table5")` is the verb `queryveil.reproduce.reproduce`: the package can be called.
"""

from queryveil.callable_package import make_callable
from queryveil.reproduce.run import NAMES, reproduce
from queryveil.reproduce.table import Table

__all__ = ["NAMES", "Table", "reproduce"]

make_callable(__name__, verb="reproduce")
