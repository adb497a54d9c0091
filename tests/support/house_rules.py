"""The house rules of methods, all of them on one log."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from queryveil.data import QueryLog
from queryveil.testing import checks_for


def keep_the_house_rules(method: Any, log: QueryLog, *, but: Container[str] = ()) -> None:
    """Run every check for a method on a log; an error says which of them it broke."""
    for check in checks_for(method):
        if check.name not in but:
            try:
                check.run(log)
            except Exception as error:
                error.add_note(f"house rule: {check.name}")
                raise
