"""How work on a cluster ends that fails or is stopped: all of it, before what it wrote is removed."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

from queryveil.engines.spark.executors import insist

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_GROUP = "spark.jobGroup.id"
_END_SECONDS = 30


@contextmanager
def over_at_the_end(spark: SparkSession) -> Iterator[None]:
    """Let no task of the block go on behind it: what it wrote then would stay where nobody looks for it."""
    context: Any = spark.sparkContext
    before, group = context.getLocalProperty(_GROUP), f"queryveil-{secrets.token_hex(8)}"
    context.setLocalProperty(_GROUP, group)
    try:
        yield
    except BaseException:
        # What Java was asked goes on when this side is interrupted, and may begin its job only now; of a job that has
        # failed other tasks may still run.
        insist(lambda: context._jsc.sc().cancelJobGroupAndFutureJobs(group))
        until = monotonic() + _END_SECONDS
        while _n_tasks(context) and monotonic() < until:
            sleep(0.1)
        raise
    finally:
        insist(lambda: context.setLocalProperty(_GROUP, before))


def _n_tasks(context: Any) -> int:
    # None runs on a Spark that has stopped.
    with suppress(Py4JError):
        return sum(int(each.numRunningTasks()) for each in context._jsc.sc().statusTracker().getExecutorInfos())
    return 0
