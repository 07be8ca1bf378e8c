"""Reports on real builds, for the tests that open them in a browser: usual ones, and one of hostile text."""

import fcntl
import functools
import random
import shutil
from collections.abc import Mapping
from pathlib import Path

import yaml
from command_runs.commands import DUMP, IN_MEMORY, VOCAB
from made_up import dump_files

from maskmill.reporting import facts, page
from maskmill.verification.options import VerifyOptions
from maskmill.verification.verifying import verify
from pipelines.commands import cli

SCRIPT = "<script>window.harmed = 1</script>"
# What would do something if it were put into a page as it is.
HOSTILE = (
    SCRIPT,
    "<img src=x onerror='window.harmed = 2'>",
    "</style></title></svg></textarea><svg onload=window.harmed=3>",
    "javascript:window.harmed=4",
    "{{ 7 * 7 }}{% for x in y %}",
    '" onmouseover="window.harmed=5" x=\'',
    "--></noscript><iframe src=https://example.org></iframe>",
    "&lt;b&gt; &amp;lt; &#60;",
    "\u202eevil\u202c \u2067right to left\u2069",
    "العربية ١٢٣ עברית",
    "<a href=https://example.org>@import url(https://example.org)</a>",
)
LONG_LINE = "word" * 250_000
_SYLLABLES = ("ba", "de", "fi", "go", "lu", "ma", "ne", "pi", "ro", "su", "ta", "vi")


def _write_build(folder: Path, **sections: Mapping[str, object]) -> Path:
    """Runs a build below a folder; returns its directory."""
    output = folder / str(sections.pop("output", "build"))
    config = folder / f"{output.name.encode().hex()}.yaml"
    config.write_text(yaml.safe_dump({"output": str(output), "report": "off", **sections}))
    assert cli.main(["build", str(config), *IN_MEMORY, "--quiet"]) == cli.DONE
    return output


def _sentences(draw: random.Random) -> str:
    """Some sentences that no other page has, so that verify has no reason to think that a text went in twice."""
    words = ["".join(draw.choices(_SYLLABLES, k=draw.randint(1, 3))) for _ in range(60)]
    return " ".join(" ".join(words[place : place + 12]).capitalize() + "." for place in range(0, 60, 12))


def usual_build(folder: Path, *, name: str = "build", whole_words: bool = False) -> Path:
    """A build of real articles."""
    examples: dict[str, object] = {"vocab_file": str(VOCAB), "max_seq_length": 128, "max_predictions_per_seq": 20}
    if whole_words:
        examples |= {"mask_unit": "word", "dupe_factor": 3, "random_seed": 7}
    return _write_build(
        folder,
        output=name,
        extract={"input": str(DUMP), "num_eval_articles": 7, "shard_size_mb": 0.3},
        examples=examples,
        eval={"num_examples_to_pick": 100},
    )


def hostile_build(folder: Path) -> Path:
    """A build whose titles, texts, names of files, and vocabulary would do harm if a page did not escape them."""
    draw = random.Random(7)
    pages = [
        dump_files.page(
            10 + number, f"{text} {number}", f"<nowiki>{text}</nowiki> is the title of this page. {_sentences(draw)}\n"
        )
        for number, text in enumerate(HOSTILE * 4)
    ]
    pages += [dump_files.page(100 + number, text, "", redirect="Somewhere") for number, text in enumerate(HOSTILE)]
    pages += [
        dump_files.page(200 + number, f"{text} ({number})", "{{disambiguation}}") for number, text in enumerate(HOSTILE)
    ]
    pages.append(dump_files.page(300, "X" * 255, f"{LONG_LINE} ends here. {_sentences(draw)}"))
    dump = folder / "a <b>bold & 'quoted' dump.xml"
    dump.write_bytes(dump_files.dump(pages))
    return _write_build(
        folder,
        output='<i onclick=harm()>& "build"',
        extract={"input": str(dump), "num_eval_articles": 5, "shard_size_mb": 0.01},
        vocabulary={"size": 300, "kind": "wordpiece", "min_frequency": 2},
        examples={"max_seq_length": 64, "max_predictions_per_seq": 10, "dupe_factor": 2},
    )


def damaged_build(build: Path) -> Path:
    """A copy of a build, with a wrong bit in its first shard of examples, which is cut off at its end, too."""
    output = shutil.copytree(build, build.with_name("damaged"))
    shard = sorted((output / "examples").glob("part-*.tfrecord"))[0]
    content = bytearray(shard.read_bytes())
    content[5000] ^= 1
    shard.write_bytes(content[:-7])
    return output


class Reports:
    """The pages by name, each made when it is asked for the first time, by one of the processes that share a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(exist_ok=True)

    def __getitem__(self, name: str) -> Path:
        path = self._folder / f"{name}.html"
        with open(self._folder / "lock", "wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                path.write_text(self._page(name), encoding="utf-8")
        return path

    @functools.cached_property
    def _build(self) -> Path:
        return usual_build(self._folder)

    @functools.cached_property
    def _other(self) -> Path:
        return usual_build(self._folder, name="other", whole_words=True)

    def _page(self, name: str) -> str:
        if name == "comparison":
            return page.render(_facts(self._build), _facts(self._other))
        if name == "examples":
            return page.render(_facts(self._other / "examples"))
        if name == "not-verified":
            return page.render(facts.collect(str(self._build)))
        if name == "damaged":
            return page.render(_facts(damaged_build(self._build)))
        if name == "hostile":
            return page.render(_facts(hostile_build(self._folder)), _facts(self._build))
        return page.render(_facts(self._build))


def _facts(directory: Path) -> facts.Facts:
    verification = verify([str(directory)], VerifyOptions())
    return facts.collect(str(directory), verification=verification)
