"""What the documents show works: their Python runs, and their commands are ones that the command line takes."""

from __future__ import annotations

import ast
import builtins
import contextlib
import io
import re
import shlex
import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main

from queryveil.cli import app
from queryveil.methods import Km
from queryveil.synthesis import synthesize, write_synthetic

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

NOT_RUN = {
    "CONTRIBUTING.md": "it is a test; tests/methods has one like it for every method",
    "docs/guides/run-on-spark.md": "spark-submit gives it a cluster and its arguments",
    "docs/guides/swap-on-spark.md": "it starts Spark for a stream of events; tests/spark does the same",
}
"""Pages whose Python is compiled, and its imports and names looked up, but not run, and why."""

GIVEN = {"docs/guides/run-on-spark.md": {"spark"}}
"""Names that a page takes from its surroundings, as a notebook of a cluster has them."""


@dataclass(frozen=True, kw_only=True)
class Block:
    """A block of code on a page; `line` is that of its first line."""

    page: str
    line: int
    language: str
    code: str


def blocks_of(path: Path) -> list[Block]:
    text, page = path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix()
    found = []
    for fence in re.finditer(r"^( *)```(\w*)\n(.*?)^ *```$", text, flags=re.MULTILINE | re.DOTALL):
        indent, language, code = fence.groups()
        code = "".join(line.removeprefix(indent) for line in code.splitlines(keepends=True))
        found.append(Block(page=page, line=text[: fence.start()].count("\n") + 2, language=language, code=code))
    return found


BLOCKS = [block for path in PAGES for block in blocks_of(path)]
PYTHON = [block for block in BLOCKS if block.language == "python"]


def by_page(blocks: list[Block]) -> dict[str, list[Block]]:
    return {page: [block for block in blocks if block.page == page] for page in {block.page: None for block in blocks}}


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the documents speak of: a log, a larger one, and a release."""
    folder = tmp_path_factory.mktemp("desk")
    made = synthesize(users=300, seed=1)
    write_synthetic(made, folder / "searches.tsv")
    write_synthetic(synthesize(users=3000, seed=1), folder / "many.tsv")
    Km(k=5, m=2).anonymize(made.log).save(folder / "release")
    return folder


@pytest.fixture
def desk(papers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, for a page to work in."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(papers, tmp_path, dirs_exist_ok=True)
    return tmp_path


def expected_output(block: Block) -> str | None:
    """Return what the page says that a block prints: the block without a language that comes next, on some pages."""
    if block.page not in ("docs/concepts/km.md", "docs/concepts/baselines.md"):
        return None
    return BLOCKS[BLOCKS.index(block) + 1].code


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in by_page(PYTHON) if page not in NOT_RUN])
def test_the_python_of_a_page_runs(page: str, desk: Path) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in by_page(PYTHON)[page]:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * (block.line - 1) + block.code, page, "exec", dont_inherit=True), names)
        expected = expected_output(block)
        assert expected is None or printed.getvalue() == expected


@pytest.mark.parametrize("page", NOT_RUN)
def test_python_that_is_not_run_imports_and_uses_what_there_is(page: str) -> None:
    known = {*dir(builtins), *GIVEN.get(page, ())}
    for block in by_page(PYTHON)[page]:
        tree = ast.parse(block.code, filename=page)
        imports: list[ast.stmt] = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        found: dict[str, Any] = {}
        exec(compile(ast.Module(body=imports, type_ignores=[]), page, "exec"), found)
        used = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        known |= {*found, *(name.id for name in used if isinstance(name.ctx, ast.Store))}
        known |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
        assert not [name.id for name in used if name.id not in known], f"{page}, line {block.line}"


def commands_of(block: Block) -> list[list[str]]:
    """Return the words of each call of queryveil in a block, also behind a pipe, without what the shell takes."""
    found = []
    for line in block.code.replace("\\\n", " ").splitlines():
        said = line.removeprefix("$ ")
        if not re.match(r"([\w-]+ .*\| )?queryveil [\w-]", said):
            continue
        parts = shlex.shlex(said, posix=True, punctuation_chars=True)
        parts.whitespace_split, parts.commenters = True, "#"
        words = list(parts)
        words = words[words.index("queryveil") + 1 :]
        ends = [i for i, word in enumerate(words) if set(word) <= set("|<>&;")]
        found.append(words[: ends[0]] if ends else words)
    return found


COMMANDS = [
    pytest.param(words, id=f"{block.page}:{' '.join(words)[:70]}")
    for block in BLOCKS
    if block.language in ("", "sh", "shell", "bash", "console")
    for words in commands_of(block)
]


def test_there_are_examples_of_both_kinds() -> None:
    assert len(PYTHON) >= 15
    assert len(COMMANDS) >= 80


@cache
def command_line() -> Any:
    # Typer has a copy of Click of its own, without types that may be imported.
    return typer.main.get_command(app)


@pytest.mark.parametrize("words", COMMANDS)
def test_a_command_of_the_documents_is_taken_by_the_command_line(words: list[str]) -> None:
    command, context = command_line(), None
    while hasattr(command, "commands"):
        context = type(command).context_class(command, parent=context)
        _, command, words = command.resolve_command(context, words)
    # Wrong options, missing arguments and values that do not convert raise here; nothing is run.
    command.make_context(command.name, words, parent=context)
