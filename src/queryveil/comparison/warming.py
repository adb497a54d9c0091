"""Compile ahead what commands would compile when they are first used on a machine."""

from contextlib import suppress

from queryveil import progress
from queryveil.attacks import attack
from queryveil.checks import verify
from queryveil.comparison.methods import METHODS, build_method, key_of
from queryveil.data import Format
from queryveil.errors import BadParameter, MissingExtra, QueryveilError
from queryveil.formats import Content, read_log
from queryveil.kernels import counter
from queryveil.reports.inspection import inspect
from queryveil.synthesis import synthesize
from queryveil.utility import measure

_N_USERS = 60
_FILES = {
    Format.CSV: b"user,query,time,rank\na,kettle,2006-03-01 07:17:12,1\n",
    Format.EXCITE: b"a\t970916105432\tkettle\n",
    Format.JSONL: b'{"user": "a", "query": "kettle", "time": 1714558830}\n',
}


def compile_for(name: str) -> None:
    """Run most kernels of a method, and of what judges its release."""
    log = synthesize(users=_N_USERS, seed=1).log
    method = build_method(name, {})
    release, key = method.anonymize(log), key_of(method)
    # Not every release promises something that can be judged.
    with suppress(QueryveilError):
        verify(release, original=log, key=key)
    attack(log, release, key=key)
    measure(log, release, key=key)


def compile_all() -> int:
    """Run most kernels of readers, methods, checkers, attackers and measures; return how many were compiled.

    Raise if what was compiled could not be kept.
    """
    n_compiled, n_kept = counter.n_compiled, counter.n_kept
    for format, data in _FILES.items():  # noqa: A001
        inspect(read_log([Content("log", data)], format=format))
    for done, name in enumerate(METHODS):
        progress.step(f"compiling for {name}", done / len(METHODS))
        # What needs an extra that is not there will not be used.
        with suppress(MissingExtra):
            compile_for(name)
    n_compiled, n_kept = counter.n_compiled - n_compiled, counter.n_kept - n_kept
    if n_kept < n_compiled:
        raise BadParameter("NUMBA_CACHE_DIR", "none", allowed="a folder that you can write, for the compiled code")
    return n_compiled
