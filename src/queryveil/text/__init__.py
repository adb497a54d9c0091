"""What is read out of the text of queries."""

from __future__ import annotations

from queryveil.text.tokens import Tokens, normalize, tokenize

__all__ = ["Tokens", "normalize", "tokenize"]
