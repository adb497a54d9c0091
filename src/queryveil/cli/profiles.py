"""`queryveil profiles STORE`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from queryveil.cli._keys import read_key
from queryveil.cli.options import JsonOption, Reading, TableFiles
from queryveil.errors import BadInput, BadParameter

if TYPE_CHECKING:
    import polars as pl

    from queryveil.service.stores.profiles import ProfileComparison

_COMPARING = "Beside the log that went in"


def profiles(
    store: Annotated[str, typer.Argument(metavar="STORE", help="A file, sqlite:FILE or postgresql://.")],
    *,
    user: Annotated[str | None, typer.Option(metavar="NAME", help="Show one profile, by its released name.")] = None,
    export: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A row a user, to .parquet, .csv or .jsonl.")
    ] = None,
    compare: Annotated[
        str | None, typer.Option(metavar="LOG", help="Compare with profiles of a log.", rich_help_panel=_COMPARING)
    ] = None,
    ids: Annotated[str, typer.Option(help="keyed or keep.", rich_help_panel=_COMPARING)] = "keyed",
    key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Secret; if none, STORE.key.", rich_help_panel=_COMPARING)
    ] = None,
    unclassified: Annotated[str, typer.Option(help="pool or drop.")] = "pool",
    classifier: Annotated[str, typer.Option(help="evidence or paper.")] = "evidence",
    tables: TableFiles,
    reading: Reading,
    as_json: JsonOption = False,
) -> None:
    """Read the profiles of a stream, also while it runs."""
    from queryveil.release import ColumnPolicy
    from queryveil.service.stores.profiles import ProfileDatabase, compare_profiles, profiles_of_log

    if sum(option is not None for option in (user, export, compare)) > 1:
        raise BadParameter("profiles", "several", allowed="asked for one of --user, --export and --compare")
    database = ProfileDatabase(store)
    if user is not None:
        _print_user(database.of_user(user), as_json=as_json)
        return
    if compare is not None:
        secret = read_key(key or (_key_beside(store) if ids == "keyed" else None))
        names = ColumnPolicy(ids=ids, key=secret)  # type: ignore[arg-type]
        chosen, log = tables.classifier(classifier), reading.read(compare)
        before = profiles_of_log(log, classifier=chosen, pseudonyms=names.released_ids, unclassified=unclassified)
        found = compare_profiles(before, after=database.table())
        if found.n_users_before and found.n_users_after and not found.n_users_both:
            raise BadInput("no user of the log has a profile here; give the key and the log that the stream had")
        _print_comparison(found, as_json=as_json)
        return
    if export is not None:
        _export(database.table, export)
        return
    _print_summary(database.table(), as_json=as_json)


def _key_beside(store: str) -> Path | None:
    """Return the key that a stream made beside its store, if there is one."""
    path = Path(f"{store.removeprefix('sqlite:')}.key")
    return path if "://" not in store and path.is_file() else None


def _print_summary(table: pl.DataFrame, *, as_json: bool) -> None:
    from queryveil.cli.output import print_facts, print_json, print_table, share

    n_rows = int(table["total"].sum())
    counts = {name: int(table[name].sum()) for name in table.columns if name not in ("user", "total")}
    if as_json:
        print_json({"n_profiles": len(table), "n_rows": n_rows, "counts": counts})
        return
    print_table(
        ["category", "rows", "share", "profiles"],
        [
            (name, n, share(n, n_rows), int((table[name] > 0).sum()))
            for name, n in sorted(counts.items(), key=lambda each: (-each[1], each[0]))
            if n
        ],
    )
    print_facts({"profiles": len(table), "rows": n_rows})


def _print_user(found: Any, *, as_json: bool) -> None:
    from queryveil.cli.output import print_facts, print_json, print_table
    from queryveil.methods.swap.preparing import shares

    if found is None:
        # Privacy: the name is not said again.
        raise BadParameter("user", "a name without a profile", allowed="a released name")
    percentages = shares(found.counts)
    if as_json:
        print_json({"n_rows": found.n_rows, "counts": found.counts, "percent": percentages})
        return
    rows = [(name, found.counts[name], f"{percent:.1f} %") for name, percent in percentages.items()]
    print_table(["category", "rows", "share"], rows)
    print_facts({"rows": found.n_rows})


def _export(table: Any, path: Path) -> None:
    from queryveil.formats import layout_for
    from queryveil.formats.write import write_frame

    if not path.name.endswith((".parquet", ".csv", ".jsonl")):
        raise BadParameter("export", path.suffix or path.name, allowed="a file .parquet, .csv or .jsonl")
    if path.exists():
        raise BadParameter("export", path.name, allowed="a file that is not there yet")
    rows = table()
    write_frame(rows, path, layout=layout_for(path))
    typer.echo(f"{len(rows):,} profiles written to {path}", err=True)


def _print_comparison(found: ProfileComparison, *, as_json: bool) -> None:
    from queryveil.cli.output import print_facts, print_json, share

    if as_json:
        print_json(found)
        return
    moved = "-" if found.distance is None else f"{found.distance:.4f}"
    print_facts(
        {
            "users of the log": found.n_users_before,
            "users with a profile": found.n_users_after,
            "users in both": found.n_users_both,
            "rows of the log": found.n_rows_before,
            "rows in profiles": f"{found.n_rows_after:,} ({share(found.n_rows_after, found.n_rows_before)})",
            "profiles that are equal": f"{found.n_equal:,} ({share(found.n_equal, found.n_users_both)})",
            "users with fewer rows": found.n_with_fewer_rows,
            "users with more rows": found.n_with_more_rows,
            "shares that moved, mean": moved,
        }
    )
