"""The text of queries: terms, histories, taxonomies, categories and identifiers."""

from queryveil.text.tokens import Tokens, normalize, tokenize

__all__ = ["Tokens", "normalize", "tokenize"]
