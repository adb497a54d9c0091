"""Taxonomies: trees of hypernyms, from WordNet or from a file of pairs."""

from queryveil.text.taxonomy.taxonomy import Taxonomy

__all__ = ["Taxonomy"]
