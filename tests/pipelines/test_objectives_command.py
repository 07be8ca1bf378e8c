"""Examples of all objectives and formats by the command: whole, resumable, the same bytes at any number of workers."""

import json
from pathlib import Path

import pytest
from command_runs.commands import DUMP, IN_MEMORY, TWO_PROCESSES, VOCAB, digests, maskmill

from pipelines.commands import cli

pytestmark = pytest.mark.builds

CASES = {
    "spans": ("--objective=mlm", "--mask_unit=span", "--dupe_factor=2", "--format=parquet"),
    "packed": ("--preset=modernbert", "--format=mds"),
    "order": ("--preset=albert", "--dupe_factor=2", "--max_seq_length=128", "--bins=3"),
    "strict": ("--strict_labels", "--pack", "--feature_names=v2", "--special_tokens_mask", "--packed"),
}


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five text shards and an eval set."""
    output = tmp_path_factory.mktemp("text") / "text"
    arguments = [f"--input={DUMP}", f"--output={output}", "--num_eval_articles=5", "--shard_size_mb=0.5", "--quiet"]
    assert cli.main(["extract", *arguments]) == cli.DONE
    return output


def arguments_of(text: Path, output: Path, flags: tuple[str, ...]) -> list[str]:
    return ["examples", f"--input={text}", f"--output={output}", f"--vocab_file={VOCAB}", *flags]


@pytest.mark.parametrize("flags", CASES.values(), ids=CASES)
@pytest.mark.exhaustive_but("packed")
def test_two_processes_give_the_same_bytes_as_one(flags: tuple[str, ...], text: Path, tmp_path: Path) -> None:
    assert cli.main([*arguments_of(text, tmp_path / "one", flags), *IN_MEMORY]) == cli.DONE
    done = maskmill(*arguments_of(text, tmp_path / "two", flags), *TWO_PROCESSES)
    assert done.returncode == 0, done.stderr
    assert digests(tmp_path / "one") == digests(tmp_path / "two")


@pytest.mark.parametrize("flags", [CASES["packed"]], ids=["packed"])
def test_a_file_that_is_lost_or_damaged_is_made_again(flags: tuple[str, ...], text: Path, tmp_path: Path) -> None:
    arguments = arguments_of(text, tmp_path / "out", flags)
    assert cli.main([*arguments, "--quiet"]) == cli.DONE
    whole = digests(tmp_path / "out")
    shards = [
        file
        for shard in json.loads((tmp_path / "out" / "manifest.json").read_text())["shards"]
        for file in shard.get("files", [shard])
    ]
    lost, damaged = (tmp_path / "out" / shards[place]["name"] for place in (0, -1))
    lost.unlink()
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)
    done = maskmill(*arguments, *IN_MEMORY)
    assert done.returncode == 0, done.stderr
    assert digests(tmp_path / "out") == whole
    assert "made again" in done.stdout


def test_another_seed_gives_other_masks_and_the_same_sequences(text: Path, tmp_path: Path) -> None:
    flags = ("--objective=mlm", "--dupe_factor=1", "--quiet")
    counts = []
    for seed in (1, 2):
        output = tmp_path / str(seed)
        assert cli.main([*arguments_of(text, output, flags), f"--random_seed={seed}"]) == cli.DONE
        counts.append(json.loads((output / "manifest.json").read_text())["counts"])
    assert {k: v for k, v in counts[0]["train"].items() if k != "bytes"} == {
        k: v for k, v in counts[1]["train"].items() if k != "bytes"
    }
    first, second = (digests(tmp_path / str(seed), manifests=False) for seed in (1, 2))
    assert [name for name in first if first[name] == second[name]] == ["vocab.txt"]
