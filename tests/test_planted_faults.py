"""The list of seeded faults fits the source; `.ci/plant_faults.py` tells which target catches each of them."""

import ci_programs
from conftest import ROOT

FAULTS = ci_programs.load("plant_faults").read_faults()


def test_each_fault_replaces_one_text_of_its_file() -> None:
    wrong = [
        fault.name
        for fault in FAULTS
        if (ROOT / fault.file).read_text(encoding="utf-8").count(fault.old) != 1 or fault.old == fault.new
    ]
    assert wrong == []


def test_the_names_differ_and_the_tests_are_there() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    assert [test for fault in FAULTS for test in fault.tests if not (ROOT / test).exists()] == []


def test_every_room_has_a_fault() -> None:
    rooms = {f"maskmill/{path.parent.name}" for path in (ROOT / "maskmill").glob("*/__init__.py")}
    assert {fault.room for fault in FAULTS} == rooms | {"pipelines", "training", "transforms", "maskmill"}
