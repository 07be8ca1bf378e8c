"""Steps of the user's own between text and sentences: what they get, what they may give, and how they fail."""

import contextlib
import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from command_runs.commands import IN_MEMORY, digests
from made_up import dump_files

from maskmill.errors import UnusableInputError
from maskmill.inputs.articles import Article
from maskmill.text_shards import own_steps
from maskmill.text_shards.own_steps import OwnStepError
from maskmill.text_shards.time_limits import PageTimeError, time_limit
from pipelines.commands import cli

STEPS = '''
import re
import time

class Shout:
    """A step that is set up once."""
    def __init__(self): self.mark = "!"
    def __call__(self, article): return article._replace(text=article.text.replace(".", self.mark))

def keep(article): return article if article.title != "Two" else None
def twice(article):
    for half in ("a", "b"):
        yield article._replace(page_id=article.page_id + half, text=f"Part {half}. " + article.text)
def same(article): return article
def fails(article): return {}[article.title] if article.title == "Two" else article
def strange(article): return ["text"]
def endless(article):
    while article.title == "Two":
        try:
            1 / 0
        except Exception:
            pass
    return article
def matching(article): return article if article.title != "Two" or not re.match("(a|a)*b", "a" * 60) else None
def waiting(article): return article if article.title != "Two" else time.sleep(60)
class Broken:
    def __init__(self): raise OSError("no table")
NUMBER = 3
'''
ARTICLE = Article("wiki", "7", "One", "It is. So.", {"language": "en"})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with the steps and a dump of three pages."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "steps.py").write_text(STEPS)
    pages = [
        dump_files.page(n, title, f"Page {title} is here.\n\nIt has text.")
        for n, title in enumerate(["One", "Two", "Three"])
    ]
    (tmp_path / "dump.xml").write_bytes(dump_files.dump(pages))
    return tmp_path


def extract(output: str, *flags: str) -> int:
    return cli.main(
        ["extract", "--input=dump.xml", "--dump_date=2020-01-02", f"--output={output}", "--num_eval_articles=0", *flags]
    )


def text_of(output: str) -> str:
    return "".join(path.read_text() for path in sorted(Path(output).glob("part-*")))


@pytest.mark.parametrize(
    ("names", "given"),
    [
        (["same"], [ARTICLE]),
        (["Shout"], [ARTICLE._replace(text="It is! So!")]),
        (["twice", "Shout"], [ARTICLE._replace(page_id=f"7{h}", text=f"Part {h}! It is! So!") for h in "ab"]),
        (["keep"], [ARTICLE]),
    ],
)
def test_steps_are_called_one_after_the_other(names: list[str], given: list[Article], folder: Path) -> None:
    assert list(own_steps.apply([f"steps.py:{name}" for name in names], ARTICLE)) == given


def test_what_a_step_drops_has_its_name_and_a_failure_its_reason(folder: Path) -> None:
    two = ARTICLE._replace(title="Two")
    assert list(own_steps.apply(["steps.py:twice", "steps.py:keep"], two)) == ["dropped_by_keep"] * 2
    with pytest.raises(OwnStepError, match=r"^fails: KeyError: 'Two'$"):
        list(own_steps.apply(["steps.py:fails"], two))
    with pytest.raises(OwnStepError, match="strange gave 'text', which is no Article"):
        list(own_steps.apply(["steps.py:strange"], two))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("steps.py", "give MODULE:NAME or FILE.py:NAME"),
        ("steps.py:", "give MODULE:NAME or FILE.py:NAME"),
        ("steps.py:nobody", "there is no such function or class"),
        ("steps.py:NUMBER", "there is no such function or class"),
        ("steps.py:Broken", r"it cannot be set up \(OSError: no table\)"),
        ("missing.py:keep", "missing.py cannot be imported"),
        ("nowhere.at_all:keep", "nowhere.at_all cannot be imported"),
    ],
)
def test_a_step_that_cannot_be_used_is_refused(name: str, said: str, folder: Path) -> None:
    with pytest.raises(UnusableInputError, match=f"^--steps {name}: .*{said}"):
        own_steps.checksum([name])


@pytest.mark.builds
def test_a_build_with_steps(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert extract("plain", *IN_MEMORY) == 0
    assert extract("same", "--steps=steps.py:same", *IN_MEMORY) == 0
    assert text_of("same") == text_of("plain")
    steps = "--steps=steps.py:keep,steps.py:Shout"
    assert extract("one", steps, *IN_MEMORY) == 0
    assert extract("two", steps, "--workers=2") == 0
    assert text_of("one") == "Page One is here!\nIt has text!\n\nPage Three is here!\nIt has text!\n\n"
    assert digests(Path("one"), manifests=False) == digests(Path("two"), manifests=False)
    made = json.loads(Path("one/manifest.json").read_text())
    assert made["counts"]["extract"]["dropped_by_keep"] == 1
    assert made["parameters"]["steps_sha256"] == own_steps.checksum(["steps.py:keep", "steps.py:Shout"])
    # Other code under the same name is another build.
    Path("steps.py").write_text(STEPS.replace('"!"', '"?"'))
    own_steps.load.cache_clear()
    capsys.readouterr()
    assert extract("one", steps, *IN_MEMORY) == 2
    assert "the data of steps" in capsys.readouterr().err


@pytest.mark.builds
def test_articles_that_a_step_fails_on_are_rejected_up_to_a_share(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert extract("out", "--steps=steps.py:fails", *IN_MEMORY) == 0
    (rejected,) = map(json.loads, Path("out/rejected.jsonl").read_text().splitlines())
    assert (rejected["title"], rejected["reason"]) == ("Two", "fails: KeyError: 'Two'")
    assert extract("few", "--steps=steps.py:fails", "--max_rejected_share=0.3", *IN_MEMORY) == 2
    assert "1 of 3 pages were rejected, more than --max_rejected_share 0.3; the first, 'Two'" in capsys.readouterr().err
    assert extract("most", "--steps=steps.py:fails", "--max_rejected_share=0.34", *IN_MEMORY) == 0


@pytest.mark.builds
@pytest.mark.parametrize("step", ["endless", "matching", "waiting"])
@pytest.mark.parametrize("flags", [IN_MEMORY, ("--workers=2",)])
def test_a_page_that_takes_too_long_is_rejected(step: str, flags: tuple[str, ...], folder: Path) -> None:
    assert extract("out", f"--steps=steps.py:{step}", "--page_seconds=0.5", *flags) == 0
    (rejected,) = map(json.loads, Path("out/rejected.jsonl").read_text().splitlines())
    assert rejected["title"] == "Two"
    assert rejected["reason"] == "its steps, or the expansion of its templates, took longer than --page_seconds"
    assert text_of("out") == "Page One is here.\nIt has text.\n\nPage Three is here.\nIt has text.\n\n"


@pytest.mark.parametrize("in_thread", [False, True])
def test_a_time_limit_ends_its_own_block_alone(in_thread: bool) -> None:
    def spin(seconds: float) -> str:
        try:
            with time_limit(seconds):
                end = time.monotonic() + 2
                while time.monotonic() < end:
                    pass
            return "ended"
        except PageTimeError:
            return "stopped"

    def all_of_it() -> list[str]:
        said = [spin(0.2), spin(10)]
        for _ in range(200):  # limits that are over as their blocks end stop nothing later
            with contextlib.suppress(PageTimeError), time_limit(0.001):
                time.sleep(0.001)
            sum(range(1000))
        return said

    if in_thread:
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(all_of_it).result() == ["stopped", "ended"]
    else:
        assert all_of_it() == ["stopped", "ended"]


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf"])
def test_a_time_limit_is_a_number_of_seconds(seconds: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert extract("out", f"--page_seconds={seconds}") == 2
    assert "page_seconds" in capsys.readouterr().err
