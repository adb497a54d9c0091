"""Made-up query logs of any size, with secrets that are known: for demos, tests and benchmarks.

`queryveil.synth(users=1000)` is the verb `queryveil.synth.synthesize`: the package can be called.
"""

from queryveil.callable_package import make_callable
from queryveil.synth.build import Synthetic, synthesize
from queryveil.synth.files import write_synthetic
from queryveil.synth.secrets import Secret
from queryveil.synth.shapes import ALTAVISTA, AOL, WEB, Shape
from queryveil.synth.values import term_values

__all__ = ["ALTAVISTA", "AOL", "WEB", "Secret", "Shape", "Synthetic", "synthesize", "term_values", "write_synthetic"]

make_callable(__name__, verb="synthesize")
