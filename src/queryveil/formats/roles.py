"""Which column of a file plays which role."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from queryveil.data import ROLES
from queryveil.errors import BadFile, BadParameter, MissingColumn

KNOWN_NAMES: Mapping[str, tuple[str, ...]] = {
    "user": (
        *("user", "user_id", "userid", "anonid", "anon_id", "client_id", "clientid", "visitor_id", "visitorid"),
        *("customer_id", "cookie_id", "cookie", "session_id", "sessionid", "session"),
    ),
    "query": (
        *("query", "q", "user_query", "search_term", "search_terms", "search_query", "searchterm", "query_text"),
        *("querytext", "keywords", "search_phrase"),
    ),
    "time": (
        *("time", "timestamp", "querytime", "query_time", "datetime", "date_time", "date", "created_at", "event_time"),
        *("ts", "@timestamp"),
    ),
    "rank": ("rank", "itemrank", "item_rank", "position", "click_rank"),
    "url": ("url", "clickurl", "click_url", "clicked_url", "clickedurl"),
}
"""The names by which roles are known, the likeliest first; case does not matter."""


_NEEDED = ("user", "query")


def check_roles(columns: Mapping[str, str] | None) -> dict[str, str]:
    """Refuse a role that there is not, and a column that has two."""
    asked = dict(columns or {})
    for role in asked:
        if role not in ROLES:
            raise BadParameter("a role in columns", role, allowed=f"one of {', '.join(ROLES)}")
    named = [name for name in asked.values() if name]
    if len(set(named)) < len(named):
        raise BadParameter("columns", "one column for two roles", allowed="a different column for each role")
    return asked


def assign_roles(
    found: Sequence[str],
    *,
    file: str,
    columns: Mapping[str, str],
    is_surely_header: bool = True,
    may_lack: bool = False,
) -> dict[str, str]:
    """Return the column of each role: the one asked for, else the one with a known name; "" asks for none.

    Names that may be data (a first line without header, keys of JSON) are in no message unless two are known ones.
    Where more columns may come (`may_lack`), a column asked for may be absent, but not that of user or query.
    """
    if len(set(found)) < len(found):
        raise BadFile(file, "two of its columns have the same name; rename one, or give it a header")
    known = match_known(found, taken=tuple(columns.values()))
    known = {role: name for role, name in known.items() if columns.get(role) != ""}
    columns = {role: name for role, name in columns.items() if name}
    # Privacy: where a file has no header, its first row would be quoted as the names of its columns.
    shown = found if is_surely_header or len(known) > 1 else [f"its {len(found)} columns"]
    for role, name in columns.items():
        if name not in found and not (may_lack and role not in _NEEDED):
            raise MissingColumn(file, role, found=shown)
    names = {**known, **columns}
    for role in _NEEDED:
        if role not in names:
            raise MissingColumn(file, role, found=shown)
    return {role: names[role] for role in ROLES if names.get(role) in found}


def match_known(found: Sequence[str], *, taken: Sequence[str] = ()) -> dict[str, str]:
    """Find the columns that have a known name.

    >>> match_known(["AnonID", "Query", "Shop"])
    {'user': 'AnonID', 'query': 'Query'}
    """
    free = {name.lower().strip(): name for name in reversed(found) if name not in taken}
    matches = {role: next((free[name] for name in known if name in free), None) for role, known in KNOWN_NAMES.items()}
    return {role: name for role, name in matches.items() if name is not None}


def add_roles(names: dict[str, str], keys: Sequence[str], *, columns: Mapping[str, str]) -> None:
    """Add to `names` the roles that further keys bring; a role that has a column keeps it.

    Privacy: were the likeliest of all names taken, one row with a `query` would empty everybody's `q`.

    >>> names = {"user": "user", "query": "q"}
    >>> add_roles(names, ["query", "time"], columns={})
    >>> names
    {'user': 'user', 'query': 'q', 'time': 'time'}
    """
    known = match_known(keys, taken=tuple(columns.values()))
    wanted = {role: name for role, name in columns.items() if name in keys}
    for role, name in {**known, **wanted}.items():
        if columns.get(role, name) == name:
            names.setdefault(role, name)


def carried_names(found: Sequence[str], *, names: Mapping[str, str]) -> dict[str, str]:
    """Name the other columns in the frame: as in the file, but `user_in_file` where that is the name of a role."""
    taken = {*ROLES, *found}
    carried: dict[str, str] = {}
    for name in found:
        if name not in names.values():
            inside = name
            while inside in ROLES or (inside != name and inside in taken):
                inside += "_in_file"
            taken.add(inside)
            carried[name] = inside
    return carried
