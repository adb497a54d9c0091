"""Judging a release on a cluster, with none of the code that made it."""

from queryveil.engines.spark.verify.judging import verify

__all__ = ["verify"]
