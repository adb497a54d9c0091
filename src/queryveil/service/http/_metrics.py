"""The stats of a service as text for Prometheus."""

from collections.abc import Iterable, Mapping

import msgspec

from queryveil.service.ports import Histogram, Stats

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_SINGLE: Mapping[str, tuple[str, str]] = {
    "events_read_total": ("n_read", "Events read, bad ones among them."),
    "events_released_total": ("n_released", "Events that left a pool."),
    "events_delivered_total": ("n_delivered", "Released events that the sink has."),
    "batches_total": ("n_batches", "Batches taken in this run."),
    "commits_total": ("n_commits", "Commits of the store."),
    "commit_seconds_total": ("total_commit_seconds", "Seconds spent in commits in this run."),
    "events_waiting": ("n_waiting", "Events in all pools."),
    "oldest_wait_seconds": ("oldest_wait_seconds", "How long the oldest event in any pool has waited."),
    "outbox_events": ("n_outbox_rows", "Released events that the sink does not have yet."),
    "outbox_bytes": ("n_outbox_bytes", "Bytes of released events that the sink does not have yet."),
    "last_commit_seconds": ("last_commit_seconds", "Seconds of the last commit."),
    "uptime_seconds": ("uptime_seconds", "Seconds since the start."),
    "ready": ("is_ready", "1 if events are taken."),
}
NOT_RELEASED: Mapping[str, str] = {
    "n_suppressed": "suppressed",
    "n_bad": "unreadable",
    "n_empty": "empty",
    "n_emptied": "only_identifiers",
    "n_unclassified_dropped": "unclassified",
    "n_repeated": "repeated",
    "n_rare": "rare",
}
"""Why events were left out: the counts of `Stats`, and what they are called here."""


def render(stats: Stats, *, requests: Mapping[tuple[str, int], int], post_seconds: Histogram) -> str:
    """Write the stats, requests by route and status, and how long posts waited for their commit."""
    lines: list[str] = []
    for name, (source, what) in _SINGLE.items():
        lines += _family(name, what, [("", getattr(stats, source))])
    left_out = {name: getattr(stats, source) for source, name in NOT_RELEASED.items()}
    labelled = [
        ("events_left_out_total", "Events that will not be released, by reason.", "reason", left_out),
        ("identifiers_removed_total", "Identifiers removed, by kind.", "kind", stats.identifiers),
        ("pool_events", "Events waiting, by category.", "category", stats.waiting),
        ("pool_threshold", "Events a pool must hold now, by category.", "category", stats.k_now),
        ("released_total", "Released events, by category.", "category", stats.released),
    ]
    for name, what, label, counts in labelled:
        # JSON escapes texts as Prometheus does.
        samples = [(f"{{{label}={msgspec.json.encode(each).decode()}}}", n) for each, n in counts.items()]
        lines += _family(name, what, samples)
    lines += _histogram("batch_seconds", "Seconds from taking a batch to its commit.", stats.latency)
    answered = [(f'{{path="{path}",code="{code}"}}', n) for (path, code), n in sorted(requests.items())]
    lines += _family("http_requests_total", "Requests answered.", answered)
    lines += _histogram("http_post_seconds", "Seconds from a POST to its commit.", post_seconds)
    return "\n".join(lines) + "\n"


def _family(name: str, what: str, samples: Iterable[tuple[str, float]], *, kind: str = "") -> list[str]:
    kind = kind or ("counter" if name.endswith("_total") else "gauge")
    head = [f"# HELP queryveil_{name} {what}", f"# TYPE queryveil_{name} {kind}"]
    return head + [f"queryveil_{name}{labels} {_number(value)}" for labels, value in samples]


def _histogram(name: str, what: str, found: Histogram) -> list[str]:
    n_up_to = found.up_to()
    buckets = [(f'_bucket{{le="{bound}"}}', n) for bound, n in zip((*found.bounds, "+Inf"), n_up_to, strict=True)]
    return _family(name, what, [*buckets, ("_sum", found.seconds), ("_count", n_up_to[-1])], kind="histogram")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))
