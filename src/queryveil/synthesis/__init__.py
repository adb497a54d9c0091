"""Synthetic query logs of any size with known secrets, for demos, tests and benchmarks."""

from queryveil.synthesis.logs import Secret, Synthetic, layout_of, synthesize, write_synthetic
from queryveil.synthesis.shapes import ALTAVISTA, AOL, WEB, Shape
from queryveil.synthesis.values import term_values

synth = synthesize

__all__ = ["ALTAVISTA", "AOL", "WEB", "Secret", "Shape", "Synthetic"]
__all__ += ["layout_of", "synth", "synthesize", "term_values", "write_synthetic"]
