"""Commands that install numgrad, in the pages: from a clone, with extras that there are."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
# What stands behind `pip install`, up to the end of the command.
INSTALLED = re.compile(r"pip\s+install\s+([^`&\n]+)")


def test_numgrad_is_installed_from_the_clone_with_extras_that_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras, commands = {*project["optional-dependencies"]}, []
    for page in PAGES:
        for command in INSTALLED.findall(page.read_text()):
            assert not re.search(r"\bnumgrad\b", command), (page.name, command)
            if "." in command.split() or ".[" in command:
                assert command.startswith("-e .") or command.startswith("-e '.["), command
                named = re.search(r"\.\[(.*?)\]", command)
                if named:
                    assert {*named[1].split(",")} <= extras, (page.name, command)
                commands.append(command)
    assert len(commands) >= 3


def test_extras_name_only_extras_that_exist() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    for needed in extras.values():
        for each in needed:
            named = re.fullmatch(r"numgrad\[(.*)\]", each)
            assert named is None or {*named[1].split(",")} <= {*extras}, each
