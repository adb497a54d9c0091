"""A stream on Spark in a process of its own, to be killed; run as a script.

mortal_swap.py SETTINGS PLACES: both are JSON, what `SwapStream` and its `run` take.
"""

from __future__ import annotations

import json
import sys

from tests.support.streams import KEY

from queryveil.spark import session
from queryveil.spark.streaming import SwapStream

if __name__ == "__main__":
    settings, places = map(json.loads, sys.argv[1:])
    spark = session.start("local[1]")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    SwapStream(key=KEY, **settings).run(spark, **places)
