"""The commands of the how-tos in docs/ run, and print what the pages say."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from how_tos import run_new_language, run_page

from maskmill.kernels import cache, compiler

pytestmark = pytest.mark.docs

PAGES = (
    "getting-started.md",
    "languages.md",
    "objectives.md",
    "sources.md",
    "estimate.md",
    "loading.md",
    "spans.md",
    "inspect.md",
    "verify.md",
    "watch.md",
    "lineage.md",
    "events.md",
    "terminal.md",
    "releases.md",
    "incremental.md",
    "kernels.md",
    "stability.md",
    "stores.md",
)


@pytest.fixture(scope="module", autouse=True)
def _no_command_compiles_what_a_warm_up_compiles() -> Iterator[None]:
    """Fails if a command made machine code of our kernels, after all of it was made."""

    def code() -> set[str]:
        found = {path.name for folder in cache.user_directories() for path in folder.glob("*.machine-code")}
        return {name for name in found if name.startswith(("maskmill.", "transforms."))}

    compiler.prepare()
    before = code()
    yield
    assert code() == before


@pytest.mark.parametrize("name", PAGES)
def test_the_page_prints_what_the_commands_print(name: str, tmp_path: Path) -> None:
    run_page(name, tmp_path)


def test_a_new_language_in_five_commands(tmp_path: Path) -> None:
    run_new_language(tmp_path)
