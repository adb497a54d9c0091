"""The same promises on a Spark cluster."""

from queryveil.engines.spark.engine import Spark
from queryveil.engines.spark.logs import SparkLog

__all__ = ["Spark", "SparkLog"]
