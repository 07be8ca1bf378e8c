"""One description of an option gives its flag and its YAML key."""

import dataclasses
from typing import Any, Literal, get_type_hints

import pytest

from maskmill.arguments import check_fields
from maskmill.errors import UnusableInputError
from maskmill.options import nested, option
from pipelines.settings import flags, options
from pipelines.settings.beam_flags import BeamFlag
from pipelines.settings.stage_options import ExtractOptions
from pipelines.stages.registry import STAGES
from pipelines.stages.stage import Stage


@dataclasses.dataclass(frozen=True, kw_only=True)
class Example:
    name: str = option(help="a name")
    size: int = option(3, help="a size, 100% of it")
    share: float | None = option(None, help="a share")
    kind: Literal["a", "b"] = option("a", help="a kind")
    cased: bool = option(True, help="a switch")
    numbers: tuple[int, ...] = option((0,), help="numbers")
    level: Literal[False, "some", "all"] = option(False, help="how much")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Inner:
    depth: int = option(2, help="how deep")
    internal: str = "not an option"

    def __post_init__(self) -> None:
        if self.depth < 0:
            raise UnusableInputError(f"--depth must be 0 or more, not {self.depth}.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Middle:
    inner: Inner = nested(Inner)
    width: float = option(1.5, help="how wide")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outer:
    output: str = option(help="where")
    middle: Middle = nested(Middle)


def parse(*argv: str, beam: dict[str, bool] | None = None) -> tuple[Example, list[str]]:
    """The options of a command line, and the flags left for Beam. `beam` tells which of its flags take a value."""
    known = {name: BeamFlag(name=name, takes_value=takes_value) for name, takes_value in (beam or {}).items()}
    line = flags.parse(argv, options.options_of(Example), lambda: known)
    return options.from_flags(Example, line.values), list(line.beam)


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        ((), True),
        (("--cased",), True),
        (("--nocased",), False),
        (("--cased=False",), False),
        (("--cased=true",), True),
        (("--cased=0",), False),
        (("-cased=f",), False),
        (("--cased", "False"), False),
        (("--cased", "yes"), True),
        (("--nocased", "--cased", "no", "--cased"), True),
    ],
)
def test_switches_take_the_forms_of_absl(argv: tuple[str, ...], expected: bool) -> None:
    assert parse("--name=x", *argv)[0].cased is expected


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        ((), False),
        (("--level",), "some"),
        (("--level", "all"), "all"),
        (("--level=all",), "all"),
        (("--level=True",), "some"),
        (("--level", "yes"), "some"),
        (("--level=False",), False),
        (("--level=off",), False),
        (("--nolevel",), False),
        (("--level", "--cased"), "some"),
    ],
)
def test_a_switch_with_levels_takes_these_too(argv: tuple[str, ...], expected: object) -> None:
    assert parse("--name=x", *argv)[0].level == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(True, "some"), (False, False), ("off", False), ("some", "some"), ("all", "all")]
)
def test_a_switch_with_levels_in_a_section(value: object, expected: object) -> None:
    made = options.from_mapping(Example, {"name": "x", "level": value}, where="x.yaml: example")
    assert made.level == expected


def test_a_value_follows_an_equals_sign_or_a_space() -> None:
    example, _ = parse("--name", "x", "--size=5", "--share", "0.5", "--kind=b", "--numbers", "0,14")
    assert example == Example(name="x", size=5, share=0.5, kind="b", numbers=(0, 14))


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ("--name=x --level=most", "--level must be one of off, some, all, not 'most'"),
        ("--name=x --sise=3", r"--sise: there is no such flag; did you mean --size\?"),
        ("--name=x --runer=FlinkRunner", "did you mean --runner"),
        ("--nmae=x", "did you mean --name"),  # before one is called missing
        ("--name=x --siz=3", "--siz"),
        ("--size=3", "--name is missing: a name"),
        ("--name=x stray", "belongs to no flag"),
        ("--name=x --cased=maybe", "--cased must be true or false"),
        ("--name=x --cased=", "--cased is empty"),
    ],
)
def test_a_command_line_that_cannot_be_meant_is_refused(argv: str, message: str) -> None:
    with pytest.raises(UnusableInputError, match=message):
        parse(*argv.split(), beam={"runner": True})


def test_flags_of_beam_are_passed_on() -> None:
    beam = {"runner": True, "runtime_type_check": False}
    _, rest = parse("--name=x", "--runner", "FlinkRunner", "--runtime_type_check", beam=beam)
    assert rest == ["--runner=FlinkRunner", "--runtime_type_check"]


def test_a_section_gives_the_same_options() -> None:
    section = {"name": "x", "size": 5, "share": 1, "kind": "b", "cased": False, "numbers": [0, 14]}
    made = options.from_mapping(Example, section, where="f: s")
    assert made == Example(name="x", size=5, share=1.0, kind="b", cased=False, numbers=(0, 14))


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"nam": "x"}, r"f: s\.nam: there is no such option; did you mean name\?"),
        ({}, r"f: s\.name is missing: a name\."),
        ({"name": 3}, r"f: s\.name must be text, not 3 \(int\); quote it\."),
        ({"name": "x", "size": "3"}, r"f: s\.size must be a whole number, not '3' \(str\)\."),
        ({"name": "x", "size": True}, r"f: s\.size must be a whole number, not True \(bool\)\."),
        ({"name": "x", "cased": "no"}, r"f: s\.cased must be true or false"),
        ({"name": "x", "kind": "c"}, r"f: s\.kind must be one of a, b, not 'c'"),
        ({"name": "x", "numbers": [1, "y"]}, r"f: s\.numbers\[1\] must be a whole number"),
        ({"name": "x", "size": None}, r"f: s\.size must be a whole number, not None"),
        (["name"], r"f: s must be a mapping"),
    ],
)
def test_a_bad_section_is_refused_in_one_sentence(section: object, message: str) -> None:
    with pytest.raises(UnusableInputError, match=message):
        options.from_mapping(Example, section, where="f: s")


# ---- options of steps, nested in those of a stage


def test_nested_options_are_flags_as_if_they_stood_in_their_place() -> None:
    assert options.names(Outer) == ["output", "depth", "width"]
    line = flags.parse(("--output=o", "--depth=5"), options.options_of(Outer))
    made = options.from_flags(Outer, line.values)
    assert made == Outer(output="o", middle=Middle(inner=Inner(depth=5)))


def test_nested_options_are_keys_of_the_same_section() -> None:
    made = options.from_mapping(Outer, {"width": 2, "depth": 0}, where="f: s", output="o")
    assert made == Outer(output="o", middle=Middle(inner=Inner(depth=0), width=2.0))


def test_the_checks_of_a_nested_step_run_when_the_stage_s_options_are_made() -> None:
    with pytest.raises(UnusableInputError, match="--depth must be 0 or more, not -1"):
        options.from_mapping(Outer, {"output": "o", "depth": -1}, where="f: s")


def test_a_field_that_is_no_option_is_no_key() -> None:
    with pytest.raises(UnusableInputError, match=r"f: s\.internal: there is no such option"):
        options.from_mapping(Outer, {"output": "o", "internal": "x"}, where="f: s")


def test_parameters_are_all_options_but_the_output() -> None:
    made = Outer(output="o", middle=Middle(width=3.0))
    assert options.parameters(made) == {"depth": 2, "width": 3.0}


def test_the_path_of_an_option_leads_to_its_value() -> None:
    assert options.options_of(Outer)["depth"].path == ("middle", "inner", "depth")


@pytest.mark.parametrize(
    ("name", "text"),
    [("name", "a name (required)"), ("size", "a size, 100% of it (default: 3)"), ("share", "a share"),
     ("numbers", "numbers (default: 0)")],
)  # fmt: skip
def test_the_full_help_gives_the_default(name: str, text: str) -> None:
    assert options.options_of(Example)[name].full_help == text


def test_a_value_that_is_none_of_the_choices_is_named() -> None:
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Chosen:
        kind: Literal["a", "b"] = "a"

        def __post_init__(self) -> None:
            check_fields(self)

    assert Chosen(kind="b").kind == "b"
    with pytest.raises(UnusableInputError, match="kind is 'c'; it must be one of a, b"):
        Chosen(kind="c")  # type: ignore[arg-type]


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_no_two_options_of_a_stage_share_a_name(stage: type[Stage[Any]]) -> None:
    def count(options_class: type) -> int:
        hints = get_type_hints(options_class)
        return sum(
            count(hints[field.name]) if dataclasses.is_dataclass(hints[field.name]) else "help" in field.metadata
            for field in dataclasses.fields(options_class)
        )

    assert count(stage.options_class) == len(options.options_of(stage.options_class))


def test_a_tilde_is_the_home_directory_for_outputs_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    chosen = options.make(ExtractOptions, {"input": ("~/a.xml", "b.xml"), "output": "~/out"})
    assert (chosen.input, chosen.output) == (("/home/me/a.xml", "b.xml"), "/home/me/out")
