"""Readers of the files that commands take beside a log: taxonomies, plans, ledgers, tables, people, corpora."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec
import polars as pl
from tests.fuzzing.engine import Target
from tests.fuzzing.logs import parquet_bytes, text
from tests.fuzzing.mutation import SECRET
from tests.support.made_up_runs import judged, known

from queryveil.attacks.attacker import read_people
from queryveil.cli.options import read_values
from queryveil.comparison.plan import read_plan
from queryveil.comparison.running import Folder
from queryveil.formats.aggregates import read_membership
from queryveil.methods import Km, settings
from queryveil.methods.dp.budget import read_ledger
from queryveil.testing import tiny_log
from queryveil.text.classifier import classifier
from queryveil.text.taxonomy import Taxonomy
from queryveil.utility.search_index import read_corpus

_PLAN = b"""holdout = 0.25
exposure = "likely_terms:4"
utility = "log_size_kept"
limit = 0.05

[[run]]
name = "few"
method = "km"
k = [5, 10]
m = 2

[[run]]
method = "swap"
growth = 1.5
keep = ["rank"]
time = "hour"
"""
_LEDGER = b"""{"total_epsilon":3.0,"total_delta":1e-5,"format_version":1}
{"epsilon":1.0,"delta":1e-6,"date":"2026-03-04","release":"spring"}
"""
_TAXONOMY = text('child,parent\nfruit,food\n"Apple, @",fruit\npear,fruit\n\nmilk,food\n')
_QUERIES = pl.Series(["red wine", "wines", "tenis", SECRET, ""])


def _classified(path: Path) -> object:
    """Read one table of the classifier, put small ones beside it, and let kernels look words up in it."""
    which = path.stem
    frames = {
        "frequencies": pl.DataFrame({"unit": ["wine"], "count": [7]}, schema_overrides={"count": pl.Int64}),
        "recommendations": pl.DataFrame({"misspelt": ["tenis"], "correct": ["tennis"]}),
        "categories": pl.DataFrame(
            {"unit": ["wine"], "category": [3], "weight": [1.0]},
            schema={"unit": pl.String, "category": pl.Int32, "weight": pl.Float32},
        ),
    }
    frames[which] = getattr(classifier, f"read_{which}")(path)
    classifier.UnitTable.build(**frames).find(_QUERIES)
    return None


def _valued(path: Path) -> object:
    return Km(k=2, m=1, target=settings.Target.BID, values=read_values(path), seed=1).anonymize(tiny_log())


def _planned(path: Path) -> object:
    plan = read_plan(path)
    plan.check()
    return plan.to_toml()


def _members(path: Path) -> object:
    return len(read_membership(path).rows())


def _result(path: Path) -> object:
    folder = Folder(path=path.parent.parent)
    assert path == folder._file(None)
    found = folder.result_of(None, fingerprint="f")
    return None if found is None else found.exposures


def targets(folder: Path) -> list[Target]:
    """Return the targets; files are written into the folder."""
    (folder / "results").mkdir(exist_ok=True)

    def at(name: str, read: Callable[[Path], object], seeds: Callable[[], Sequence[bytes]], *words: bytes) -> Target:
        """Return a target that writes its input to a file and has that read."""
        path = folder / name.partition(":")[2]

        def read_file(data: bytes) -> object:
            path.write_bytes(data)
            path.chmod(0o600)
            return read(path)

        name_of_target = name.partition(":")[0]
        return Target(
            name=name_of_target, read=read_file, seeds=seeds, words=words, quotes=name_of_target in ("plan", "ledger")
        )

    documents = text('{"text":"@ and wine","id":1,"title":"@"}\n{"text":"b"}\n')
    bids = {"term": ["jaguar", SECRET], "bid": [0.5, 1.0], "clicks": [1, 2], "impressions": [3, 4]}
    told = msgspec.json.encode(judged("few", known(3), kept=0.5))
    csvs = {
        "frequencies": text("unit,count\nwine,12\n@ wine,3\n"),
        "recommendations": text("misspelt,correct\ntenis,@\nwinne,wine\n"),
        "categories": text("unit,category,weight\nwine,Shopping,0.5\n@,kids_and_teens,1\n"),
    }
    tables = [at(f"table.{name}:{name}.csv", _classified, partial(list, [data])) for name, data in csvs.items()]
    counts = {"unit": ["wine", SECRET], "count": [12, 3]}
    members = {"user": [SECRET, "8"], "group": [1, 2]}
    return [
        *tables,
        at("table.parquet:frequencies.parquet", _classified, lambda: [parquet_bytes(counts, compression="none")]),
        at("values.csv:values.csv", _valued, lambda: [text("term,bid,clicks,impressions\njaguar,0.5,1,2\n@,1,2,3\n")]),
        at("values.parquet:values.parquet", _valued, lambda: [parquet_bytes(bids, compression="none")]),
        at("membership.csv:m.csv", _members, lambda: [text("user,group\n@,1\n8,2\n")]),
        at("membership.jsonl:m.jsonl", _members, lambda: [text('{"user":"@","group":1}\n')]),
        at("membership.parquet:m.parquet", _members, lambda: [parquet_bytes(members, compression="none")]),
        at("taxonomy:taxonomy.csv", Taxonomy.read_csv, lambda: [_TAXONOMY], b"child,parent\n", b"food", b"fruit"),
        at("plan:plan.toml", _planned, lambda: [_PLAN], b"[[run]]\n", b"km", b"swap", b"taxonomy = ", b"wordnet"),
        at("result:results/original.json", _result, lambda: [told]),
        at("ledger:log.budget", read_ledger, lambda: [_LEDGER]),
        at("people:people.jsonl", read_people, lambda: [text('{"name":"@","town":"@ton","user":"7"}\n')]),
        at("corpus.jsonl:corpus.jsonl", read_corpus, lambda: [documents]),
        at("corpus.gzip:corpus.jsonl.gz", read_corpus, lambda: [gzip.compress(documents, mtime=0)]),
    ]
