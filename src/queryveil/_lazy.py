"""Names of a package that are imported when they are first used, so that importing the package stays fast."""

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

_IMPORT = re.compile(r"^from (\S+) import (\([^)]*\)|.+)$", re.MULTILINE)
_NAME = re.compile(r"(\w+) as (\w+)")


def lazy_names(package: str, homes: Mapping[str, tuple[str, str]]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package; `homes` has the module of each name, and what it is called there.

    >>> lazy_names("kitchen", {"root": ("math", "sqrt")})("root")(9)
    3.0
    >>> lazy_names("kitchen", {})("kettle")
    Traceback (most recent call last):
    AttributeError: module 'kitchen' has no attribute 'kettle'
    """

    def getter(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, known_as = homes[name]
        return getattr(import_module(module), known_as)

    return getter


def names_of_stub(package: str, file: str) -> tuple[Callable[[str], Any], list[str]]:
    """Return the `__getattr__` and the `__all__` of a package whose names stand in the stub beside it.

    The stub, which editors and type checkers read too, has lines `from MODULE import NAME as NAME, ..`.
    """
    text = Path(file).with_suffix(".pyi").read_text(encoding="utf-8")
    homes = {public: (module, name) for module, names in _IMPORT.findall(text) for name, public in _NAME.findall(names)}
    return lazy_names(package, homes), sorted(homes)
