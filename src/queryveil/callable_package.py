"""Packages that can be called.

`queryveil.verify` is a package, and also the verb: `queryveil.verify(release)`. Importing a package sets it as an
attribute of its parent, over whatever stood there; so the package itself answers when it is called.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


def make_callable(package: str, *, verb: str) -> None:
    """Let `package(...)` mean `package.verb(...)`; the last line of the package's `__init__`.

    >>> import sys, types
    >>> sys.modules["kettle"] = types.ModuleType("kettle")
    >>> sys.modules["kettle"].boil = lambda litres: f"{litres} l boil"
    >>> make_callable("kettle", verb="boil")
    >>> sys.modules.pop("kettle")(2)
    '2 l boil'
    """

    class CallablePackage(ModuleType):
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return getattr(self, verb)(*args, **kwargs)

    sys.modules[package].__class__ = CallablePackage
