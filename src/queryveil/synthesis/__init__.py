"""Synthetic query logs of any size with known secrets, for demos, tests and benchmarks."""

from queryveil.synthesis.logs import Secret, Synthetic, synthesize, term_values, write_synthetic
from queryveil.synthesis.shapes import ALTAVISTA, AOL, WEB, Shape

synth = synthesize

__all__ = ["ALTAVISTA", "AOL", "WEB", "Secret", "Shape", "Synthetic"]
__all__ += ["synth", "synthesize", "term_values", "write_synthetic"]
