"""Names of a package that are imported when they are first used, so that importing the package stays fast."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package; `homes` has the module that defines names, and the names with blanks.

    >>> lazy_names("kitchen", {"math": "sqrt floor"})("floor")(2.5)
    2
    >>> lazy_names("kitchen", {"math": "sqrt floor"})("kettle")
    Traceback (most recent call last):
    AttributeError: module 'kitchen' has no attribute 'kettle'
    """
    home_of = {name: home for home, names in homes.items() for name in names.split()}

    def getter(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(home_of[name]), name)

    return getter
