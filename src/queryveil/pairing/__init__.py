"""An original and a release of it side by side: one numbering of terms, and who is who."""

from queryveil.pairing.ancestors import Ancestors, is_generalised
from queryveil.pairing.identity import ESTIMATED, Identity, distinct_bags
from queryveil.pairing.pair import Original, Pair, pseudonymised, released_texts, share_numbers

__all__ = ["ESTIMATED", "Ancestors", "Identity", "Original", "Pair", "distinct_bags", "is_generalised"]
__all__ += ["pseudonymised", "released_texts", "share_numbers"]
