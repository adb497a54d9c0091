"""Settings are declared once: what is made from them agrees with the methods, the commands and the page."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass, fields
from typing import Any

import pytest
import typer.main
from tools.options_page import PAGE, page

from queryveil import methods
from queryveil.cli import app
from queryveil.comparison.methods import METHODS
from queryveil.errors import BadParameter
from queryveil.methods.settings import LineSettings, PoolSettings
from queryveil.service.settings import StreamSettings
from queryveil.settings import check_settings, parameters_of, parse_share, setting, settings_of, values_of
from queryveil.spark.streaming import SwapStream


@dataclass(frozen=True, slots=True, kw_only=True)
class Kettle:
    litres: float = setting(1.5, above=0, at_most=3, help="What it holds.")
    cups: int | None = setting(4, at_least=1, none="for a bowl", help="Cups.")
    lid: str = setting("on", one_of=("on", "off"), help="The lid.")
    name: str = setting("", help="Its name.", recorded=False)

    def __post_init__(self) -> None:
        check_settings(self)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"litres": 0}, "litres must be above 0 and at most 3, got 0"),
        ({"litres": float("nan")}, "litres must be above 0 and at most 3, got nan"),
        ({"cups": 10**400}, f"cups must be 1 or more, or none for a bowl, got {10**400}"),
        ({"litres": "much"}, "litres must be a number, got 'much'"),
        ({"cups": 0}, "cups must be 1 or more, or none for a bowl, got 0"),
        ({"cups": 2.0}, "cups must be 1 or more, or none for a bowl, got 2.0"),
        ({"cups": True}, "cups must be 1 or more, or none for a bowl, got True"),
        ({"lid": "ajar"}, "lid must be on or off, got ajar"),
        ({"lid": None}, "lid must be on or off, got None"),
    ],
)
def test_a_setting_outside_its_range_is_one_clear_line(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(BadParameter) as refused:
        Kettle(**wrong)
    assert str(refused.value) == message


def test_settings_keep_the_manners_of_a_dataclass() -> None:
    kettle = Kettle(cups=None)
    assert repr(kettle).endswith("Kettle(litres=1.5, cups=None, lid='on', name='')")
    assert kettle == Kettle(cups=None)
    assert values_of(kettle) == {"litres": 1.5, "cups": None, "lid": "on", "name": ""}
    assert parameters_of(kettle, lid="shut") == {"litres": 1.5, "cups": None, "lid": "shut"}
    with pytest.raises(FrozenInstanceError):
        kettle.cups = 2  # type: ignore[misc]


def commands() -> dict[str, Any]:
    return typer.main.get_command(app).commands["anonymize"].commands  # type: ignore[attr-defined,no-any-return]


@pytest.mark.parametrize("name", METHODS)
def test_every_setting_of_a_method_is_an_option_and_a_line_of_its_docstring(name: str) -> None:
    kind = METHODS[name]
    flags = {flag for each in commands()[name.replace("_", "-")].params for flag in each.opts}
    for about in settings_of(kind).values():
        assert about.help
        assert about.flag in flags
    for field in fields(kind):
        assert f"\n    - {field.name}: " in (kind.__doc__ or ""), field.name


def test_the_pools_have_the_same_defaults_wherever_they_run() -> None:
    for kind in (methods.Swap, StreamSettings, SwapStream, LineSettings, PoolSettings):
        for name in ("k", "l", "growth", "max_pool"):
            assert settings_of(kind)[name] == settings_of(PoolSettings)[name]


def test_the_page_of_options_is_what_the_commands_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "write it anew: python -m tools.options_page"


@pytest.mark.parametrize("wrong", ["5", "-1%", "101%", "five", "", "%", "nan", "inf", True, -0.1, 1.5])
def test_a_share_that_is_none_is_one_clear_line(wrong: str | float) -> None:
    with pytest.raises(BadParameter, match="limit must be a share such as 5% or"):
        parse_share(wrong, name="limit")


@pytest.mark.parametrize("permille", range(0, 1001, 7))
def test_a_share_is_the_same_as_per_cent_and_as_a_number(permille: int) -> None:
    assert parse_share(f"{permille / 10}%", name="limit") == parse_share(permille / 1000, name="limit")
