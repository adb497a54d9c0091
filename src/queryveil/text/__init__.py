"""The text of queries: terms, histories, taxonomies, categories and identifiers."""

from queryveil.text.tokens import Tokens, join_terms, tokenize

__all__ = ["Tokens", "join_terms", "tokenize"]
