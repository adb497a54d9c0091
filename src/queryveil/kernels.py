"""How kernels are compiled: `njit` as Numba has it, and where nothing can be kept they are compiled for one run."""

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numba
from numba import prange
from numba.core import caching, config, event

from queryveil import progress

__all__ = ["counter", "njit", "prange"]

ONCE = "compiling for this machine, once, about a minute; queryveil warm-up does it ahead"
EACH_TIME = (
    "compiling for this run only, about a minute: no folder for the compiled code is writable; "
    "set NUMBA_CACHE_DIR to a folder that you can write"
)


class _CompiledAhead(caching.InTreeCacheLocator):
    """What was compiled ahead beside the source or in NUMBA_CACHE_DIR by somebody who could write there."""

    def __init__(self, py_func: Any, py_file: str) -> None:
        super().__init__(py_func, py_file)  # type: ignore[no-untyped-call]
        if config.CACHE_DIR:  # type: ignore[attr-defined]
            provided = caching.UserProvidedCacheLocator(py_func, py_file)  # type: ignore[no-untyped-call]
            self._cache_path = provided.get_cache_path()  # type: ignore[no-untyped-call]

    def ensure_cache_path(self) -> None:
        """Accept a folder that cannot be written, or is not there."""


class _Places(caching.CompileResultCacheImpl):
    _locator_classes = [*caching.CacheImpl._locator_classes, _CompiledAhead]  # noqa: RUF012


class _KernelCache(caching.FunctionCache):
    """Numba's cache, but that a folder which cannot be read or written costs time and no more."""

    _impl_class = _Places

    @property
    def is_kept(self) -> bool:
        """Whether what is compiled now will be there in the next run."""
        return not isinstance(self._impl.locator, _CompiledAhead)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        with suppress(OSError):
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        if self.is_kept:
            with suppress(OSError):
                super().save_overload(sig, data)  # type: ignore[no-untyped-call]


class _Counter(event.Listener):
    """Counts the kernels that are compiled, and tells of the first."""

    def __init__(self) -> None:
        self.n_compiled = 0
        self.n_kept = 0

    def on_start(self, event: Any) -> None:
        kernel = event.data["dispatcher"]
        if kernel.py_func.__module__.startswith("queryveil."):
            is_kept = isinstance(kernel._cache, _KernelCache) and kernel._cache.is_kept
            self.n_compiled += 1
            self.n_kept += is_kept
            progress.notify(ONCE if is_kept else EACH_TIME, is_routine=is_kept)

    def on_end(self, event: Any) -> None:
        """Nothing is to be done."""


counter = _Counter()
event.register("numba:compile", counter)  # type: ignore[no-untyped-call]


if TYPE_CHECKING:
    from numba import njit
else:

    def njit(*, cache: bool = True, **options: Any) -> Any:
        """Return the decorator of a kernel, as `numba.njit` does; with `cache` it is kept between runs if it can be."""

        def declare(function: Any) -> Any:
            kernel = numba.njit(**options)(function)
            if cache:
                # Numba would refuse to declare a kernel where it finds no folder to keep it in.
                try:
                    kernel._cache = _KernelCache(function)
                except (RuntimeError, OSError):
                    kernel._cache = caching.NullCache()
            return kernel

        return declare
