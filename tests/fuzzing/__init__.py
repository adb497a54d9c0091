"""Fuzzing of everything that takes bytes from outside.

A reader may return a value or raise an error of queryveil whose message holds no text of the input; any other
exception, a warning, a crash, a hang or memory that grows without end is a fault. Inputs are changes of small
well-formed ones; those that reach new lines of the package are changed further (`engine`). Kernels are not followed.

| targets | reader |
|---|---|
| `log.*` | `read_log` in every format, compressed and detected; `shape_of`, which tells what a file hides |
| `transactions.*`, `profiles` | `read_transactions`, `read_profiles`, `are_profiles` |
| `manifest.*`, `data.*` | `read_release` and `verify`: the manifest, or the data with its checksum made to fit (log, |
| | transactions, groups, noisy counts and clicks) |
| `signature`, `key.*` | `manifest.sig`, public and private keys |
| `membership.*`, `taxonomy`, `ledger`, `people`, `corpus.*`, `values.*` | files that commands take beside a log |
| `plan`, `result`, `table.*` | plans and earlier results of `compare`, tables of the classifier |
| `stream.*` | the first lines and the lines of the live service |
| `file.*`, `position`, `redis.entry` | file sources, positions in a store, entries of a Redis stream |
| `http.gzip`, `http.request` | bodies while they come in, and requests: head, address, headers, body |
| `token`, `address`, `tls.*` | secrets in files |
| `store.*`, `pools.*` | rows of a store, its file, and the pools in it, with checksums made to fit |

Not here: any bytes are a key of ids (its length alone is looked at), Spark reads files in pieces with the same
readers, and what PostgreSQL and Kafka hand over is a row or a line as elsewhere.
"""

from __future__ import annotations

from pathlib import Path

from tests.fuzzing import logs, releases, services, stores, tables
from tests.fuzzing.engine import Target


def all_targets(folder: Path) -> dict[str, Target]:
    """Return every target by its name; each family writes into a folder of its own below the one given."""
    found: dict[str, Target] = {}
    for family in (logs, tables, releases, services, stores):
        place = folder / family.__name__.rpartition(".")[2]
        place.mkdir(parents=True, exist_ok=True)
        found |= {target.name: target for target in family.targets(place)}
    return found
