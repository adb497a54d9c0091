"""What every release says that was made with a seed, of a log without times, or of a file that was not UTF-8."""

from __future__ import annotations

from queryveil.log import Reading


def caveats(reading: Reading, *, seeded: bool, shuffled: str, cannot_tell_bots: bool) -> list[str]:
    """Give the warnings; `shuffled` is what whoever knows the seed could put in order again."""
    found = []
    if seeded:
        found.append(f"made with a seed: whoever knows it can undo the shuffling of {shuffled}")
    if cannot_tell_bots:
        found.append("the log has no times, so programs could not be told from people")
    if reading.n_latin1_rows:
        found.append(f"rows that were not UTF-8 and were read as Latin-1: {reading.n_latin1_rows}")
    return found
