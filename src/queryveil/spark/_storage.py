"""Files and folders through Hadoop (disk, HDFS, object stores), atomic release folders, and cancellation of jobs."""

import secrets
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from time import monotonic, sleep
from typing import Any
from urllib.parse import unquote

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from queryveil.errors import BadParameter, NamedTwice, NotWritten, ReleaseExists
from queryveil.formats.streams import identity_of
from queryveil.release import MANIFEST
from queryveil.release.contents import OpenFolder
from queryveil.spark._executors import retry_py4j

_GROUP = "spark.jobGroup.id"
_END_SECONDS = 30


@contextmanager
def cancel_jobs_on_error(spark: SparkSession) -> Iterator[None]:
    """Cancel the Spark jobs of the block if it raises: tasks that go on would write files that nobody removes."""
    context: Any = spark.sparkContext
    before, group = context.getLocalProperty(_GROUP), f"queryveil-{secrets.token_hex(8)}"
    context.setLocalProperty(_GROUP, group)
    try:
        yield
    except BaseException:
        # What Java was asked goes on when this side is interrupted, and may begin its job only now; of a job that has
        # failed other tasks may still run.
        retry_py4j(lambda: context._jsc.sc().cancelJobGroupAndFutureJobs(group))
        until = monotonic() + _END_SECONDS
        while _n_running_tasks(context) and monotonic() < until:
            sleep(0.1)
        raise
    finally:
        retry_py4j(lambda: context.setLocalProperty(_GROUP, before))


def _n_running_tasks(context: Any) -> int:
    # None runs on a Spark that has stopped.
    with suppress(Py4JError):
        return sum(int(each.numRunningTasks()) for each in context._jsc.sc().statusTracker().getExecutorInfos())
    return 0


_MOST_BYTES = 2**31 - 1
_LAST_SECONDS = 2


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Storage:
    """File operations through the Hadoop file system, with the settings and rights of the Spark session."""

    spark: SparkSession

    def qualified(self, path: str) -> str:
        """Return a path with its scheme, as all executors understand it."""
        return str(self._at(path)[0].makeQualified(self._path(path)))

    def exists(self, path: str) -> bool:
        """Return whether there is anything at a path."""
        files, where = self._at(path)
        return bool(files.exists(where))

    def is_folder(self, path: str) -> bool:
        """Return whether there is a folder at a path."""
        files, where = self._at(path)
        return bool(files.exists(where) and files.getFileStatus(where).isDirectory())

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder, in their order."""
        files, where = self._at(folder)
        return sorted(str(status.getPath().getName()) for status in files.listStatus(where))

    def local(self, path: str) -> Path | None:
        """Return a path on the disk of this machine; None where it is elsewhere."""
        files, where = self._at(path)
        if str(files.getUri().getScheme()) != "file":
            return None
        return Path(str(files.makeQualified(where).toUri().getPath()))

    def check_named_once(self, paths: list[str]) -> None:
        """Raise if two paths, as Spark lists them, lead to one file: its people would count twice."""
        seen: dict[object, str] = {}
        for path in paths if len(paths) > 1 else ():
            local = self.local(unquote(path))
            # On a disk links lead to one file too; elsewhere there are none.
            identity = path if local is None else identity_of(local)
            if identity is not None and identity in seen:
                raise NamedTwice(PurePosixPath(path).name, first=PurePosixPath(seen[identity]).name)
            seen[identity] = path

    def kinds(self, folder: str) -> dict[str, str]:
        """Return the kind of everything in a folder by its name: file or folder, and on a disk also link, pipe, ..."""
        local = self.local(folder)
        if local is not None:
            with OpenFolder(local) as opened:
                return opened.kinds()
        files, where = self._at(folder)
        found = ((str(status.getPath().getName()), status.isDirectory()) for status in files.listStatus(where))
        return {name: "folder" if is_folder else "file" for name, is_folder in sorted(found)}

    def stamps(self, paths: list[str]) -> list[tuple[int, int]]:
        """Return the size and the time of the last change of each file."""
        found = [files.getFileStatus(where) for files, where in map(self._at, paths)]
        return [(int(status.getLen()), int(status.getModificationTime())) for status in found]

    def make_private(self, folder: str, *, shown_name: str) -> None:
        """Make a folder that only its owner may enter, or let nobody else enter it; messages call it `shown_name`."""
        files, where = self._at(folder)
        if not files.mkdirs(where, self._permission("700")):
            raise NotWritten(shown_name, "no folder can be made there", so="nothing was released")
        files.setPermission(where, self._permission("700"))

    def apply_umask(self, folder: str) -> None:
        """Give a folder the permissions of a new one: all that the umask allows."""
        files, where = self._at(folder)
        mask = self._permission.getUMask(self._configuration)
        files.setPermission(where, self._permission("777").applyUMask(mask))

    def rename(self, old: str, new: str) -> None:
        """Rename a file or folder; the new name must be free."""
        files, where = self._at(old)
        if not files.rename(where, self._path(new)):
            raise NotWritten(PurePosixPath(new).name, "it cannot be renamed to that")

    def delete(self, path: str) -> None:
        """Remove a file or a folder with all that is in it."""
        files, where = self._at(path)
        files.delete(where, True)

    def read(self, path: str, *, most_bytes: int = _MOST_BYTES) -> bytes:
        """Return the first bytes of a file, or all bytes of a small one."""
        files, where = self._at(path)
        n_bytes = min(int(files.getFileStatus(where).getLen()), most_bytes)
        with closing(files.open(where)) as stream:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream, n_bytes))

    def sha256_of(self, paths: list[str]) -> dict[str, str]:
        """Return the SHA-256 of files and of the files in folders, by their names."""
        files = self.spark.read.format("binaryFile").load(paths)
        rows = files.select("path", F.sha2("content", 256).alias("sha256")).collect()
        return {PurePosixPath(row["path"]).name: row["sha256"] for row in rows}

    def parquet_names(self, path: str) -> tuple[list[str], list[str]]:
        """Return the names of a Parquet file's columns and the keys of its metadata, without a job of Spark."""
        hadoop = self._jvm.org.apache.parquet.hadoop
        file = hadoop.util.HadoopInputFile.fromPath(self._path(path), self._configuration)
        with closing(hadoop.ParquetFileReader.open(file)) as reader:
            footer = reader.getFooter().getFileMetaData()
        columns = [str(each.getName()) for each in footer.getSchema().getFields()]
        return columns, [str(key) for key in footer.getKeyValueMetaData().keySet().toArray()]

    def write(self, path: str, data: bytes, *, is_private: bool = False) -> None:
        """Write a small file whole."""
        files, where = self._at(path)
        with closing(files.create(where, True)) as stream:
            stream.write(data)
        if is_private:
            files.setPermission(where, self._permission("600"))

    def upload(self, file: str, path: str) -> None:
        """Copy a file of this machine to a path."""
        files, where = self._at(path)
        files.copyFromLocalFile(False, True, self._path(f"file://{file}"), where)

    def delete_crc_files(self, folder: str) -> None:
        """Delete the hidden .crc files that Hadoop writes beside files on a local disk."""
        files, where = self._at(folder)
        if self.local(folder) is None:
            return
        raw = files.getRawFileSystem()
        for status in raw.listStatus(where):
            name = str(status.getPath().getName())
            if name.startswith(".") and name.endswith(".crc"):
                raw.delete(status.getPath(), False)

    def check_free(self, folder: str, *, force: bool) -> None:
        """Raise if something stands in the place of a release that may not be replaced."""
        parent = str(self._path(self.qualified(folder)).getParent())
        if not self.is_folder(parent):
            raise BadParameter("output", folder, allowed="a folder to be made in one that is there")
        if not self.exists(folder):
            return
        if not force:
            raise ReleaseExists(folder)
        if not self.is_folder(folder) or (self.names(folder) and MANIFEST not in self.names(folder)):
            raise BadParameter("output", folder, allowed="a release folder or an empty one to be replaced with --force")

    @contextmanager
    def whole(self, folder: str, *, force: bool) -> Iterator[str]:
        """Yield a temporary folder beside the target that is renamed to it if the block does not raise."""
        target = self.qualified(folder)
        with self.scratch(target, kind="partial") as partial:
            yield partial
            self.apply_umask(partial)
            self.check_free(folder, force=force)
            self._put(partial, target)

    def _put(self, partial: str, target: str) -> None:
        """Rename the whole folder to its name; what stood there is gone only once the new one stands."""
        if not self.exists(target):
            self.rename(partial, target)
            return
        old = _beside(target, "old")
        self.rename(target, old)
        try:
            self.rename(partial, target)
        except BaseException:
            self.rename(old, target)
            raise
        self.delete(old)

    @contextmanager
    def scratch(self, beside: str, *, kind: str = "scratch") -> Iterator[str]:
        """Yield a folder for intermediate results that only its owner may enter; it is deleted in the end.

        Privacy: it holds terms and user ids.
        """
        target = self.qualified(beside)
        folder = _beside(target, kind)
        self.make_private(folder, shown_name=PurePosixPath(target).name)
        files, where = self._at(folder)
        # Java removes it if this side is killed.
        files.deleteOnExit(where)
        try:
            with cancel_jobs_on_error(self.spark):
                yield folder
        except KeyboardInterrupt:
            self.delete(folder)
            # Java may have been about to write, and makes a folder in it before it finds that it may not.
            sleep(_LAST_SECONDS)
            raise
        finally:
            self.delete(folder)
            files.cancelDeleteOnExit(where)

    @property
    def _jvm(self) -> Any:
        return self.spark._jvm

    @property
    def _configuration(self) -> Any:
        return self.spark._jsc.hadoopConfiguration()

    @property
    def _permission(self) -> Any:
        return self._jvm.org.apache.hadoop.fs.permission.FsPermission

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(path)

    def _at(self, path: str) -> tuple[Any, Any]:
        where = self._path(path)
        return where.getFileSystem(self._configuration), where


def _beside(target: str, kind: str) -> str:
    """Return a new hidden name beside a target."""
    parent, _, name = target.rstrip("/").rpartition("/")
    return f"{parent}/.{name}.{kind}-{secrets.token_hex(8)}"
