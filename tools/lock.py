"""Write requirements/*.txt: what `make` installs, with the hashes of the files that an index may hand out for it.

    python -m tools.lock

Versions are those of constraints.txt; which packages a set needs is read from pyproject.toml and from what is installed
here, so run it where `make test` has run. Hashes come from the index that pip is set up for, and no file names it.
"""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from urllib.parse import unquote
from urllib.request import Request, urlopen

from packaging.requirements import Requirement
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "requirements"
BUILDING = ("editables", "hatchling", "packaging", "pathspec", "pluggy", "setuptools", "tomlkit", "trove-classifiers")
"""What builds the package; it is installed with hashes too, and not fetched by pip on the way."""
PYTHONS = ("cp311", "cp312", "cp313", "cp314")
PLATFORM = re.compile(r"any|manylinux.*_(x86_64|aarch64)|macosx_.*|win_amd64")
_LINK = re.compile(r'href="[^"#]*?([^"/#]+)#sha256=([0-9a-f]{64})"')
# A set, what it is for, and its extra in pyproject.toml.
SETS = {"run": "make demo", "test": "make test", "bench": "make bench"}


def pinned() -> dict[str, str]:
    """Return the version of each package in constraints.txt, by its normal name."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(name): version for name, version in pairs}


def asked(extra: str) -> list[Requirement]:
    """Return what pyproject.toml asks for, for itself (`run`) or for an extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    found = [Requirement(text) for text in project["dependencies"] + ([] if extra == "run" else extras[extra])]
    inner = {name for one in found if one.name == project["name"] for name in one.extras}
    more = [Requirement(text) for name in sorted(inner) for text in extras[name]]
    return [one for one in [*found, *more] if one.name != project["name"]]


def closure(wanted: Iterable[Requirement]) -> dict[str, str]:
    """Return the packages that these need, as far as they are installed here, with the marker of each that has one."""
    found: dict[str, str] = {}
    waiting = [(one, str(one.marker or "")) for one in wanted]
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        one, marker = waiting.pop()
        name, key = canonicalize_name(one.name), (canonicalize_name(one.name), frozenset(one.extras))
        if key in seen:
            continue
        seen.add(key)
        found[name] = marker
        try:
            needed = [Requirement(text) for text in requires(name) or ()]
        except PackageNotFoundError:
            continue
        for each in needed:
            ways = [{"extra": extra} for extra in one.extras] or [{"extra": ""}]
            if each.marker is None or any(each.marker.evaluate(way) for way in ways):
                waiting.append((each, marker))
    return found


def sets() -> dict[str, dict[str, str]]:
    """Return the packages of each set with their markers."""
    known = pinned()
    run = dict.fromkeys(BUILDING, "") | closure(asked("run"))
    test = run | closure(asked("test"))
    bench = closure(asked("bench"))
    # Nobody tests with what only benchmarks need: all else that is pinned is for them.
    rest = set(known) - set(test)
    only = {name: marker for name, marker in bench.items() if name in rest}
    marker = next(filter(None, only.values()), "")
    return {"run": run, "test": test, "bench": run | bench | {name: only.get(name, marker) for name in rest}}


def files_of(name: str, version: str, index: str) -> Iterator[tuple[str, str]]:
    """Return the files of a version that may be installed, wheels if there are any, with their SHA-256."""
    with urlopen(Request(f"{index.rstrip('/')}/{name}/", headers={"Accept": "text/html"})) as answer:
        listed = _LINK.findall(answer.read().decode())
    sources = []
    for text, digest in ((unquote(text), digest) for text, digest in listed):
        # Names of old files are not always in order.
        with suppress(InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
            if text.endswith(".whl"):
                _, found, _, tags = parse_wheel_filename(text)
                if str(found) == version and any(_fits(tag.interpreter, tag.abi, tag.platform) for tag in tags):
                    yield text, digest
            elif text.endswith(".tar.gz") and str(parse_sdist_filename(text)[1]) == version:
                sources.append((text, digest))
    yield from sources


def _fits(interpreter: str, abi: str, platform: str) -> bool:
    is_python = interpreter in (*PYTHONS, "py3", "py2.py3") or (abi == "abi3" and interpreter.startswith("cp3"))
    return is_python and not abi.endswith("t") and PLATFORM.fullmatch(platform) is not None


def chosen_files(name: str, version: str, index: str) -> list[str]:
    """Return the hashes of the wheels, or of the source where there is no wheel."""
    found = list(files_of(name, version, index))
    wheels = [digest for text, digest in found if text.endswith(".whl")]
    return sorted(wheels or [digest for _, digest in found])


def index_of_pip() -> str:
    """Return the address of the index that pip asks."""
    code = "from pip._internal.models.index import PyPI; print(PyPI.simple_url)"
    asked = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    told = (
        done.stdout or subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    )
    return told.strip()


def page(packages: dict[str, str], hashes: dict[str, list[str]], *, purpose: str) -> str:
    """Return the file of a set."""
    known = pinned()
    lines = [f"# What `{purpose}` installs, made by `python -m tools.lock` from constraints.txt; names no index."]
    for name in sorted(packages):
        marker = f" ; {packages[name]}" if packages[name] else ""
        lines.append(
            " \\\n".join([f"{name}=={known[name]}{marker}", *(f"    --hash=sha256:{x}" for x in hashes[name])])
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the files."""
    index, found = index_of_pip(), sets()
    missing = {name for packages in found.values() for name in packages} - set(pinned())
    if missing:
        sys.exit(f"constraints.txt has no version of {', '.join(sorted(missing))}")
    with ThreadPoolExecutor(8) as threads:
        each = {name: threads.submit(chosen_files, name, version, index) for name, version in pinned().items()}
        hashes = {name: task.result() for name, task in each.items()}
    FOLDER.mkdir(exist_ok=True)
    for name, purpose in SETS.items():
        (FOLDER / f"{name}.txt").write_text(page(found[name], hashes, purpose=purpose), encoding="utf-8")


if __name__ == "__main__":
    main()
