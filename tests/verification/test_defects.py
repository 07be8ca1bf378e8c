"""`maskmill verify` finds every damage of damages.py, as it is and with the manifests regenerated over it."""

from collections.abc import Iterator

import pytest
from conftest import ROOT
from damaged_copies import BUILDS, GoodBuilds, look_at, serious
from damages import DAMAGES, Damage
from regenerating import regenerate

from maskmill.verification.findings import CHECKS, import_checks
from maskmill.verification.verifying import verify

AS_IT_IS, REGENERATED = "as_it_is", "regenerated"

# What `make test` runs: damage to bytes, to files, to masks, and a leak of the eval set. `make test-heavy` has each
# damage in one build and one mode, others for the next damage; `make test-exhaustive` has all of them, in minutes.


def _cases() -> Iterator[object]:
    for number, damage in enumerate(DAMAGES):
        modes = (AS_IT_IS, REGENERATED) if damage.again else (AS_IT_IS,)
        of_all = damage.builds[number % len(damage.builds)], modes[number // 2 % len(modes)]
        for build in damage.builds:
            for mode in modes:
                is_quick = (
                    damage.is_quick and build == "tfrecord" and mode == (REGENERATED if damage.again else AS_IT_IS)
                )
                marks = [pytest.mark.long] if is_quick else [pytest.mark.builds]
                if not is_quick and (build, mode) != of_all:
                    marks.append(pytest.mark.exhaustive)
                yield pytest.param(damage, build, mode, id=f"{damage.name}-{build}-{mode}", marks=marks)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> GoodBuilds:
    return GoodBuilds(folder=tmp_path_factory.mktemp("builds"))


@pytest.mark.parametrize(("damage", "build", "mode"), list(_cases()))
def test_damage_is_found(damage: Damage, build: str, mode: str, good: GoodBuilds) -> None:
    verification = look_at(good, build, damage, regenerated=mode == REGENERATED)
    findings = serious(verification)
    checks = {finding.check for finding in findings}
    assert checks & (damage.again if mode == REGENERATED else damage.found), [f.message for f in findings]
    for finding in findings:
        assert finding.message.endswith(".")
        assert "\n" not in finding.message
        assert finding.file in finding.message


@pytest.mark.parametrize(
    ("damage", "build"),
    [
        pytest.param(
            damage,
            build,
            id=f"{damage.name}-{build}",
            marks=[pytest.mark.builds, *([pytest.mark.exhaustive] if build != of_all else [])],
        )
        for number, damage in enumerate(DAMAGES)
        if damage.of_rows
        for of_all in [damage.builds[number % len(damage.builds)]]
        for build in damage.builds
        if build != "dynamic"  # whose rows have no masks, so that they may be equal
        # N-grams leave too few ways to mask a row, and bins have rows of one text.
        if damage.name != "a_row_is_there_twice" or build not in ("packed", "bins")
    ],
)
def test_damage_to_rows_is_found_without_the_text(damage: Damage, build: str, good: GoodBuilds) -> None:
    verification = look_at(good, build, damage, regenerated=True, without_text=True)
    assert not verification.outcomes["seed"].looked_at
    assert {finding.check for finding in serious(verification)} & damage.again


@pytest.mark.parametrize("build", [pytest.param(name, marks=pytest.mark.builds) for name in BUILDS])
def test_builds_are_right_before_they_are_damaged(build: str, good: GoodBuilds) -> None:
    root = good.copy(build).root
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    regenerate(root)
    # The regenerated manifests say the same: so whatever is found in a damaged copy comes from the damage.
    assert {path for path in before if path.read_bytes() != before[path]} <= set(root.rglob("manifest.json"))
    assert [finding.message for finding in serious(verify([str(root)]))] == []


def test_there_are_many_kinds_of_damage() -> None:
    assert len({damage.name for damage in DAMAGES}) == len(DAMAGES) >= 40
    assert {check for damage in DAMAGES for check in damage.found | damage.again} <= set(CHECKS)


def test_the_page_lists_the_checks() -> None:
    import_checks()
    rows = [f"| `{check.name}` | {check.title} |" for check in CHECKS.values()]
    table = "\n".join(["| check | what it makes sure of |", "|---|---|", *rows, ""])
    assert table in (ROOT / "docs" / "verify.md").read_text()
