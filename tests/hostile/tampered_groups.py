"""Groups of plink with other members, terms, weights and counts, and whether the release is still true then."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from tests.hostile.malformed_logs import SECRET
from tests.hostile.manifest_truths import Truth
from tests.hostile.releases import Base, holds_plink, read_rows, write_rows
from tests.hostile.tampered_manifests import Tampering
from tests.hostile.tampered_rows import edited


def edited_groups(base: Base, rng: random.Random) -> Iterator[Tampering]:
    said = base.manifest
    if said["data"]["kind"] != "groups":
        return
    data = base.data.read_bytes()

    def heavier(group: dict[str, Any]) -> None:
        group["terms"][min(group["terms"])] += 0.2

    def more_holders(group: dict[str, Any]) -> None:
        (group.get("holders") or group["terms"])[min(group["terms"])] += 1

    def new_term(group: dict[str, Any]) -> None:
        group["terms"] = {SECRET: 1.0, **group["terms"]}

    def renamed(group: dict[str, Any]) -> None:
        for part in ("terms", "holders"):
            if group.get(part):
                group[part] = {
                    (key.upper() if key == min(group["terms"], key=str.lower) else key): n
                    for key, n in group[part].items()
                }

    edits: dict[str, Callable[[dict[str, Any]], None]] = {
        "a weight": heavier,
        "holders": more_holders,
        "a term more": new_term,
        "a term in upper case": renamed,
        "a member more": lambda group: group.update(members=group["members"] + 1),
        "a member less": lambda group: group.update(members=group["members"] - 1),
        "a size more": lambda group: group.update(size=group["size"] + 1),
        "a size less": lambda group: group.update(size=group["size"] - 1),
        "a key more": lambda group: group.update(name=SECRET),
        "another number": lambda group: group.update(group=77),
        "no terms": lambda group: group.update(terms={}),
        "negative members": lambda group: group.update(members=-1),
        "huge members": lambda group: group.update(members=2**60),
        "a weight that is negative": lambda group: group["terms"].update({min(group["terms"]): -1.0}),
    }
    for name, edit in edits.items():
        for with_counts in (False, True):
            rows = read_rows(data, "jsonl")
            group = rng.choice([row for row in rows if row["terms"]])
            edit(group)
            fitted = base.manifest
            if with_counts:
                fitted["counts"]["n_users_after"] = n_members = sum(row["members"] for row in rows)
                fitted["measures"]["average_group_size"] = round(n_members / len(rows), 6)
            elif name not in ("a member more", "a member less"):
                continue
            is_odd = name in ("a key more", "another number", "a term in upper case", "a weight that is negative")
            kept = with_counts and not is_odd and holds_plink(rows, said["promise"])
            is_more = fitted["counts"]["n_users_after"] > fitted["counts"]["n_users_before"]
            truth: Truth = "true" if kept and not is_more else "false"
            yield edited(base, "groups edited", name, fitted, write_rows(rows, data, "jsonl"), truth)
