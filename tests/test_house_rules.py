"""The rules of the house, tested on the house."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import os
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl
import pytest
import typer.main

import queryveil
from queryveil import errors
from queryveil.checks import verify
from queryveil.cli import app
from queryveil.errors import QueryveilError
from queryveil.guarantees import NoPromise
from queryveil.methods import Km, Target
from queryveil.release import ColumnPolicy, Ids
from queryveil.testing import log_of
from queryveil.text import tokenize
from queryveil.text.histories import collect
from queryveil.text.tokens import encode

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "queryveil"
MAX_FILES = 300
MAX_IMPORT_SHARE = 0.06
HEAVY = ("numba", "numpy", "pandas", "polars", "pyarrow")


def modules() -> list[ModuleType]:
    found = pkgutil.walk_packages(queryveil.__path__, "queryveil.")
    return [queryveil, *(importlib.import_module(each.name) for each in found if not each.name.endswith("__main__"))]


@pytest.mark.parametrize("module", [each for each in modules() if hasattr(each, "__all__")], ids=lambda m: m.__name__)
def test_every_exported_name_exists_once_and_in_order(module: ModuleType) -> None:
    for name in module.__all__:
        assert getattr(module, name) is not None
    assert len(set(module.__all__)) == len(module.__all__)


def test_every_package_says_what_it_exports_and_every_module_what_it_is_for() -> None:
    for module in modules():
        assert module.__doc__, module.__name__
        if hasattr(module, "__path__") and module.__name__.count(".") == 1:
            assert module.__all__, module.__name__


def test_the_names_of_the_package_are_listed_when_asked_for() -> None:
    for name in queryveil.__all__:
        assert getattr(queryveil, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nosuch'"):
        queryveil.nosuch  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize(
    "code",
    [
        "import queryveil",
        "import queryveil.cli",
        "import sys; sys.argv = ['queryveil', '--help']; from queryveil.cli import main\n"
        "try: main()\nexcept SystemExit: pass",
        "import sys; sys.argv = ['queryveil', 'anonymize', 'km', '--help']; from queryveil.cli import main\n"
        "try: main()\nexcept SystemExit: pass",
    ],
    ids=["import", "import cli", "help", "help of km"],
)
def test_neither_importing_nor_help_loads_a_heavy_library(code: str) -> None:
    ask = f"{code}\nimport sys; print('LOADED', *[name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout.splitlines()[-1] == "LOADED"


def error_classes() -> dict[str, type[Exception]]:
    found = inspect.getmembers(errors, inspect.isclass)
    return {name: each for name, each in found if issubclass(each, QueryveilError)}


def test_every_error_stands_in_the_tree_below_its_parent() -> None:
    tree = re.findall(r"^([│ ├└─]*)(\w+)", errors.__doc__ or "", flags=re.MULTILINE)
    drawn = {name: len(stem) // 4 for stem, name in tree if name in error_classes()}
    parents: dict[str, str | None] = {}
    line: list[str] = []
    for name, depth in drawn.items():
        parents[name] = line[depth - 1] if depth else None
        line[depth:] = [name]
    assert parents == {
        name: None if each is QueryveilError else each.__bases__[0].__name__ for name, each in error_classes().items()
    }


def test_errors_are_defined_in_one_file_only() -> None:
    for module in modules():
        for _, each in inspect.getmembers(module, inspect.isclass):
            if issubclass(each, Exception) and each.__module__.startswith("queryveil"):
                assert each.__module__ == "queryveil.errors", each


def leaf_commands(command: Any = None, path: tuple[str, ...] = ()) -> list[str]:
    command = command or typer.main.get_command(app)
    inner = getattr(command, "commands", {})
    return [found for name in inner for found in leaf_commands(inner[name], (*path, name))] or [" ".join(path)]


def documents() -> str:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return "\n".join(page.read_text(encoding="utf-8") for page in pages if page.is_file())


@pytest.mark.parametrize("command", leaf_commands())
def test_every_command_is_documented(command: str) -> None:
    assert f"queryveil {command}" in documents()


def stem_of(method: type[Any]) -> str:
    """Return the stem that runs through code, test, page and command: TokenHash is token_hash."""
    if method.__module__.startswith("queryveil.methods.practice"):
        return str(method.name)
    return re.sub(r"(?<!^)(?=[A-Z])", "_", method.__name__).lower()


def test_every_public_method_has_a_checker_a_concept_page_a_test_and_a_command() -> None:
    from queryveil import methods

    public = [getattr(methods, name) for name in methods.__all__ if hasattr(getattr(methods, name), "anonymize")]
    stems = {stem_of(each) for each in public}
    # Baselines that promise nothing have nothing to check, and share a page.
    practice = {stem_of(each) for each in public if each.__module__.startswith("queryveil.methods.practice")}
    baselines = {stem_of(each) for each in public if isinstance(each().promise, NoPromise)} - practice
    for method in public:
        model = "practice" if stem_of(method) in practice else type(method().promise).__struct_config__.tag
        assert model == "none" or (SOURCE / "checks" / f"{model}.py").is_file()
    assert "km" in stems - baselines
    # Methods of practice share a checker, a page and a test.
    assert len(practice) == 5
    for stem in stems:
        page = "baselines" if stem in baselines else "practice" if stem in practice else stem
        tested, title = ("practice", stem.replace("_", "-")) if stem in practice else (stem, stem)
        assert (ROOT / "tests" / "methods" / f"test_{tested}.py").is_file()
        assert f"# {title}" in (ROOT / "docs" / "concepts" / f"{page}.md").read_text(encoding="utf-8")
        assert f"anonymize {stem.replace('_', '-')}" in leaf_commands()


def test_no_file_has_more_than_400_lines_and_none_has_a_name_that_says_nothing() -> None:
    for path in [*SOURCE.rglob("*.py"), *(ROOT / "tests").rglob("*.py")]:
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 400, path
        assert path.stem not in ("utils", "helpers", "common", "manager"), path


@functools.cache
def sources() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in SOURCE.rglob("*.py")}


def test_there_are_few_files_and_few_of_their_lines_are_imports() -> None:
    assert len(sources()) <= MAX_FILES
    imports = [
        node.end_lineno - node.lineno + 1
        for tree in sources().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom) and node.end_lineno is not None
    ]
    n_lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in sources())
    assert sum(imports) <= MAX_IMPORT_SHARE * n_lines


def imported_at_the_top(body: list[ast.stmt]) -> Iterator[str]:
    """Return the names that a module imports when it is loaded, as ``package.module.name``."""
    for node in body:
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.If) and ast.unparse(node.test) != "TYPE_CHECKING":
            yield from imported_at_the_top(node.body)


def folder_graph() -> dict[str, set[str]]:
    """Return which folder imports from which, where `__init__` and `__main__`, which only hand on, do not count."""
    packages = {".".join(("queryveil", *path.parent.relative_to(SOURCE).parts)) for path in SOURCE.rglob("__init__.py")}
    files = {path.relative_to(SOURCE): tree for path, tree in sources().items()}
    found: dict[str, set[str]] = {package: set() for package in packages}
    for path, tree in files.items():
        if path.stem in ("__init__", "__main__"):
            continue
        here = ".".join(("queryveil", *path.parent.parts))
        for name in imported_at_the_top(tree.body):
            parts = name.split(".")
            prefixes = [".".join(parts[:n]) for n in range(len(parts), 0, -1)]
            package = next((each for each in prefixes if each in packages), None)
            if package is not None and package != here:
                found[here].add(package)
    return found


def test_folders_do_not_import_each_other_in_a_circle() -> None:
    graph = folder_graph()
    assert "queryveil.data" in graph["queryveil.methods.km"]
    reached = {folder: set(inner) for folder, inner in graph.items()}
    for middle in graph:
        for folder in graph:
            if middle in reached[folder]:
                reached[folder] |= reached[middle]
    assert [folder for folder in graph if folder in reached[folder]] == []


def test_no_file_names_a_place_of_one_machine() -> None:
    # Built from parts, or this file would name them itself.
    places = [f"/{first}/{second}" for first, second in (("work", "main"), ("work", "shared"), ("tmp", "w/"))]
    for path in [*SOURCE.rglob("*.py"), *(ROOT / "tests").rglob("*.py"), *(ROOT / "docs").rglob("*.md")]:
        text = path.read_text(encoding="utf-8")
        assert not any(place in text for place in places), path


def test_no_repr_shows_text_ids_keys_or_seeds() -> None:
    log = log_of({"persona1": ["kestrel lantern"], "persona2": ["kestrel lantern"], "persona3": ["mulberry"]})
    values = pl.DataFrame({"term": ["kestrel"], "bid": [7.25]})
    policy = ColumnPolicy(ids=Ids.KEYED, key=b"opensesame-opensesame")
    method = Km(k=2, m=2, target=Target.BID, values=values, columns=policy, seed=987654)
    release = method.anonymize(log)
    tokens, (owners, users) = tokenize(log.frame["query"]), encode(log.frame["user"])
    broken = verify(release_of_everything(log))
    assert not broken.holds
    things = [log, release, release.manifest, method, policy, tokens, verify(release), broken, broken.witnesses[0]]
    things.append(collect(tokens, owners, n_users=len(users)))
    for thing in things:
        shown = repr(thing) + str(thing)
        for text in ("kestrel", "lantern", "mulberry", "persona", "opensesame", "987654", "7.25"):
            assert text not in shown, type(thing)


def release_of_everything(log: queryveil.QueryLog) -> queryveil.Release:
    """Return a release that promises what the log does not keep."""
    release = Km(k=2, m=1).anonymize(log)
    return queryveil.Release(data=log, manifest=release.manifest)
