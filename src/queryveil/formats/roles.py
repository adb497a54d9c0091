"""Assign the roles (user, query, time, rank, url, ...) to the columns of a file, and name the other columns."""

from collections.abc import Iterable, Mapping, Sequence, Sized

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
    # Under other names they are columns like any other.
    "device": ("device",),
    "country": ("country",),
    "language": ("language",),
}
"""Column names recognised for each role, the most likely first, compared without case."""

_REQUIRED = ("user", "query")
_MOST_COLUMNS = 1000
"""Each takes a place in every row, whether a row has it or not."""


def check_width(found: Sized, *, file: str) -> None:
    """Raise if a text file has more columns than a log can have."""
    if len(found) > _MOST_COLUMNS:
        reason = f"it has {len(found):,} columns, and {_MOST_COLUMNS:,} are read; leave out those that nobody needs"
        raise BadFile(file, reason)


def check_roles(columns: Mapping[str, str] | None) -> dict[str, str]:
    """Return the requested columns by role; raise for an unknown role or a column named for two roles."""
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

    Error messages quote column names only if the first line is surely a header or two names are recognised, since
    they may be data. With `may_lack` a requested column other than user and query may be absent, as in JSON lines.
    """
    if len(set(found)) < len(found):
        raise BadFile(file, "two of its columns have the same name; rename one, or give it a header")
    known = match_known(found, taken=tuple(columns.values()))
    known = {role: name for role, name in known.items() if columns.get(role) != ""}
    columns = {role: name for role, name in columns.items() if name}
    # Privacy: where a file has no header, its first row would be quoted as the names of its columns.
    shown = found if is_surely_header or len(known) > 1 else [f"its {len(found)} columns"]
    for role, name in columns.items():
        if name not in found and not (may_lack and role not in _REQUIRED):
            raise MissingColumn(file, role, found=shown)
    names = {**known, **columns}
    for role in _REQUIRED:
        if role not in names:
            raise MissingColumn(file, role, found=shown)
    return {role: names[role] for role in ROLES if names.get(role) in found}


def match_known(found: Sequence[str], *, taken: Sequence[str] = ()) -> dict[str, str]:
    """Return the column of each role whose name is recognised.

    >>> match_known(["AnonID", "Query", "Shop"])
    {'user': 'AnonID', 'query': 'Query'}
    """
    free = {name.lower().strip(): name for name in reversed(found) if name not in taken}
    matches = {role: next((free[name] for name in known if name in free), None) for role, known in KNOWN_NAMES.items()}
    return {role: name for role, name in matches.items() if name is not None}


def add_roles(names: dict[str, str], keys: Sequence[str], *, columns: Mapping[str, str]) -> None:
    """Add to `names` the roles of newly found keys; a role that already has a column keeps it.

    Privacy: if a more likely name replaced it, one row with a key `query` would empty the `q` of all other rows.

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


def frame_names(found: Sequence[str], *, names: Mapping[str, str]) -> dict[str, str]:
    """Return the frame name of every column of a file: its role, or its own (`user_in_file` if that is a role's)."""
    taken, inside_names = {*ROLES, *found}, {name: role for role, name in names.items()}
    for name in found:
        if name not in inside_names:
            inside = name
            while inside in ROLES or (inside != name and inside in taken):
                inside += "_in_file"
            taken.add(inside)
            inside_names[name] = inside
    return inside_names


def in_role_order(names: Iterable[str]) -> list[str]:
    """Return the names with those of roles first, in the order of `ROLES`, the others as they come."""
    given = list(names)
    return [role for role in ROLES if role in given] + [name for name in given if name not in ROLES]
