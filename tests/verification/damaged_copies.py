"""The good builds that damages are done to, and what `verify` finds in damaged copies of them."""

import dataclasses
import random
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from damages import Damage, Scene
from data_sets.whole_builds import PICKED, Made, extract_text, make_build
from regenerating import regenerate

from maskmill.verification.findings import Finding, Verification
from maskmill.verification.verifying import verify

# BERT draws once for a document whether its pairs are short: with its 0.1 few of these documents would have any.
_SOME_SHORT = {"short_seq_prob": 0.3}

BUILDS: Mapping[str, Mapping[str, Any]] = {
    "tfrecord": {"picked": PICKED, **_SOME_SHORT},
    "parquet": {"format": "parquet", **_SOME_SHORT},
    "mds": {"format": "mds", **_SOME_SHORT},
    "packed": {"format": "parquet", "objective": "sop", "pack": True, "short_seq_prob": 0.5},
    "bins": {"objective": "mlm", "bins": 3},
    "dynamic": {
        "format": "mds",
        "objective": "mlm",
        "dynamic_masking": True,
        "mask_unit": "whole_word",
        "special_tokens_mask": True,
    },
    "gzip": {"packed": True},
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class GoodBuilds:
    """Makes each build once, when it is asked for; copies lie where it was made, so that its manifests' paths hold."""

    folder: Path

    def copy(self, name: str) -> Made:
        """A copy of a build, in the place of the one before."""
        place, kept = self.folder / name / "build", self.folder / name / "good"
        setups = _SETUPS.setdefault(self.folder, {})
        if name not in setups:
            text = self.folder / "text"
            if not text.exists():
                extract_text(text, documents=24, eval_articles=4, shard_mb=0.15)
            setups[name] = make_build(place, text, **BUILDS[name])
            place.rename(kept)
        if place.exists():
            shutil.rmtree(place)
        shutil.copytree(kept, place)
        return dataclasses.replace(setups[name], root=place)


_SETUPS: dict[Path, dict[str, Made]] = {}


def look_at(
    good: GoodBuilds, name: str, damage: Damage, *, regenerated: bool, without_text: bool = False
) -> Verification:
    """What `verify` finds in a copy of a build that was damaged."""
    made = good.copy(name)
    scratch = good.folder / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    before = _content(made.root)
    damage.apply(Scene(made=made, scratch=scratch, chance=random.Random(damage.name)))
    assert _content(made.root) != before, f"{damage.name} does nothing to {name}"
    if regenerated:
        regenerate(made.root)
    if without_text:
        shutil.rmtree(made.root / "text")
    return verify([str(made.root)])


def serious(verification: Verification) -> list[Finding]:
    """The findings that are more than notes."""
    return [finding for finding in verification.findings if finding.severity != "note"]


def _content(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file() and ".maskmill" not in path.parts}
