"""Type checks of settings: what counts as a number and as a whole number."""

from __future__ import annotations

from numbers import Integral, Real


def is_number(value: object) -> bool:
    """Return whether a setting is a number.

    >>> [is_number(value) for value in (1, 0.5, True, "1", None)]
    [True, True, False, False, False]
    """
    return isinstance(value, Real) and not isinstance(value, bool)


def is_whole(value: object) -> bool:
    """Return whether a setting is a whole number.

    >>> [is_whole(value) for value in (1, 1.0, True, "1", None)]
    [True, False, False, False, False]
    """
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_utf8(name: str) -> bool:
    r"""Return whether the name of a file can be written down; Python also has names that are any bytes.

    >>> is_utf8("spring"), is_utf8(b"\xff".decode(errors="surrogateescape"))
    (True, False)
    """
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
