"""What is a kind of what: a tree of terms, from WordNet or from a file of pairs."""

from queryveil.text.taxonomy.taxonomy import Taxonomy

__all__ = ["Taxonomy"]
