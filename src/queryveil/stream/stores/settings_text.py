"""What a state was made with, as text: a line `name=value` for each setting."""

from __future__ import annotations

from queryveil.errors import BadParameter


def check_settings(now: str, *, before: str) -> None:
    r"""Raise if a setting is another one than when the stream began.

    >>> check_settings("k=10\nl=2", before="k=10\nl=10")
    Traceback (most recent call last):
    queryveil.errors.BadParameter: l must be 10 as when this stream began (or name another --store), got 2
    """
    there, asked = _parse(before), _parse(now)
    for name in [*there, *(name for name in asked if name not in there)]:
        if there.get(name) == asked.get(name):
            continue
        if "key" in name:
            # Privacy: not even a part of a key is shown.
            raise BadParameter(name, "another", allowed="the one this stream began with (or name another --store)")
        was = there.get(name, "left out")
        allowed = f"{was} as when this stream began (or name another --store)"
        raise BadParameter(name, asked.get(name, "nothing"), allowed=allowed)


def _parse(text: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in text.splitlines() if line.strip())
    return {name.strip(): value.strip() for name, _, value in pairs}
