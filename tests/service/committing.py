"""Numbered commits to a store, one after the other until this process is ended; run as a script.

committing.py STORE: prints the number that it finds, and a line after its first commit.
"""

from __future__ import annotations

import sys

from tests.support.commits import SETTINGS, numbered_commit

from queryveil.service.pipeline.urls import open_store

if __name__ == "__main__":
    store = open_store(sys.argv[1])
    number = store.open(settings=SETTINGS).number
    print(number, flush=True)
    store.commit(numbered_commit(number + 1))
    print("begun", flush=True)
    while True:
        number += 1
        store.commit(numbered_commit(number + 1))
