"""Names of other libraries that are not promised: all there, and all listed."""

import ast
import dataclasses
from collections.abc import Iterator

import pytest
from conftest import ROOT

from maskmill import private_names
from maskmill.private_names import PRIVATE_NAMES, PrivateName

OWN_PACKAGES = ("maskmill", "pipelines", "transforms", "training")

# What begins with an underscore and is documented.
DOCUMENTED = {"_exit", "_fields", "_field_defaults", "_getframe"}


@pytest.mark.parametrize("library", ["python", "apache-beam", "google-cloud-core", "numba"])
def test_every_private_name_is_there(library: str) -> None:
    gone = private_names.missing(library)
    assert not gone, "\n".join(gone)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("numba.core.gone", "dumps"),
        ("numba.core.serialize", "gone"),
        ("numba.core.serialize", "dumps.gone"),
        ("numba.core.dispatcher", "Dispatcher._gone"),
        ("numba.core.dispatcher", "_Gone._cache"),
    ],
)
def test_a_name_that_is_gone_is_one_sentence(module: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = PrivateName("numba", "0.1", module, name, "compiles")
    monkeypatch.setattr(private_names, "PRIVATE_NAMES", (gone, dataclasses.replace(gone, library="apache-beam")))
    (sentence,) = private_names.missing("numba")
    assert sentence.startswith("numba ")
    assert sentence.endswith(f" has no {module}.{name}, which 0.1 had; maskmill compiles with it.")


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def sources() -> Iterator[tuple[str, ast.AST]]:
    """Each module of ours, parsed, with its path."""
    for package in OWN_PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            yield str(path.relative_to(ROOT)), ast.parse(path.read_text("utf-8"))


def defined_names(tree: ast.AST) -> Iterator[str]:
    """The names that a module gives to functions, classes, variables, and attributes of its own objects."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
                yield name


def used_names(tree: ast.AST) -> Iterator[str]:
    """The private names that a module imports from elsewhere, looks up in something, or passes arguments by."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=name) | ast.keyword(arg=str(name)) if is_private(name):
                yield name
            case ast.Call(func=ast.Name(id="getattr" | "setattr"), args=[_, ast.Constant(value=str(name)), *_]) if (
                is_private(name)
            ):
                yield name
            case ast.ImportFrom(module=str(module), names=aliases) if module.split(".")[0] not in OWN_PACKAGES:
                yield from filter(is_private, [*module.split("."), *(alias.name for alias in aliases)])


@pytest.mark.builds
def test_no_other_private_name_is_used() -> None:
    trees = dict(sources())
    own = {name for tree in trees.values() for name in defined_names(tree)}
    listed = {name.name.rpartition(".")[2] for name in PRIVATE_NAMES}
    listed |= {part for name in PRIVATE_NAMES for part in name.module.split(".")}
    used = {(path, name) for path, tree in trees.items() for name in used_names(tree)}
    unlisted = {(path, name) for path, name in used if name not in own | listed | DOCUMENTED}
    assert not unlisted, f"list these in maskmill/data/private_names.toml: {sorted(unlisted)}"
    # And the list holds nothing that is not used any more.
    private = {name for name in listed if is_private(name)}
    assert private <= {name for _, name in used}, private - {name for _, name in used}
