"""Writes docs/reference/options.md from the commands themselves: python -m tools.options_page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from queryveil.cli import app
from queryveil.settings import Setting

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "options.md"
_HEAD = """# Options

Every option of every command, as the program has them. What the commands do, with examples, is told in
[commands](cli.md). A flag is off unless it is given. This page is written by `python -m tools.options_page`.
"""


def page() -> str:
    """Return the page as it should be."""
    return "\n".join(
        [_HEAD, *(part for path, command in _commands(get_command(app)) for part in _section(path, command))]
    )


def _commands(command: Any, path: str = "queryveil") -> Iterator[tuple[str, Any]]:
    inner = getattr(command, "commands", {})
    for name, each in inner.items():
        yield from _commands(each, f"{path} {name}")
    if not inner:
        yield path, command


def _section(path: str, command: Any) -> list[str]:
    settings: dict[str, Setting] = getattr(command.callback, "settings", {})
    rows = [_row(each, settings.get(each.opts[-1])) for each in command.params]
    return [
        f"## {path}\n",
        f"{command.help}\n",
        "| option | default | allowed | meaning |",
        "|---|---|---|---|",
        *rows,
        "",
    ]


def _row(option: Any, setting: Setting | None) -> str:
    is_argument = option.param_type_name == "argument"
    names = [option.metavar or option.name] if is_argument else sorted(option.opts, key=len)
    shown = ", ".join(f"`{name}`" for name in names)
    if option.metavar and not is_argument:
        shown = f"{shown[:-1]} {option.metavar}`"
    is_off = option.default is None or option.default is False
    default = "needed" if option.required else "" if is_off else f"`{option.default}`"
    allowed = "" if setting is None else setting.range
    return " | ".join(["", shown.replace("|", "\\|"), default, allowed, option.help.rstrip("."), ""]).strip()


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
