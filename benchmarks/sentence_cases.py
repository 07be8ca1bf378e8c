"""Counts how many cases of public test sets for sentences the rules split as the sets say.

    python -m benchmarks.sentence_cases CHECKOUT... [--before MASKMILL] [--print en]

Each CHECKOUT is a copy of nipunsadvilkar/pySBD, diasks2/pragmatic_segmenter or wikimedia/sentencex; nothing of them is
in this repository. `--before` sets the counts of another checkout of maskmill beside these, `--print` prints the cases
of a language that are not split so.

A case is a text of one line and its sentences. Cases that clean the text are passed over: their sentences do not add up
to it. Languages that have no parameters of Punkt are split by the other rules, as an input too short to train Punkt is.
"""

import argparse
import ast
import dataclasses
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from transforms.sentences.choice import language_names, named_choice

_GOLDEN = "golden"  # in the names of the lists that hold the rules that others cite
_RUBY_CASE = re.compile(
    r"""Segmenter\.new\(text:\s*(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')(?P<options>[^)\n]*)\)\s*"""
    r"""expect\(ps\.segment\)\.to\ eq\(\[(?P<sentences>.*?)\]\)\s*end""",
    re.DOTALL,
)
_RUBY_STRING = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'""", re.DOTALL)
_LANGUAGE_OPTION = re.compile(r"""language:\s*["'](\w+)["']""")
_NAMES = {"deutsch": "de", "burmese": "my"}  # names of files that are none of Wikipedia's languages


@dataclasses.dataclass(frozen=True)
class Case:
    """A text and its sentences. source: the set, and whether the case is one of its golden rules."""

    source: str
    language: str
    text: str
    sentences: tuple[str, ...]


def _code(name: str) -> str:
    codes = {language.name.lower(): code for code, language in reversed(language_names().items())}
    return _NAMES.get(name) or codes.get(name, name)


def pysbd_cases(folder: Path) -> Iterator[Case]:
    """The cases of tests/lang/test_*.py: lists of pairs, and of `pytest.param` with two arguments."""
    for path in sorted((folder / "tests" / "lang").glob("test_*.py")):
        language = _code(path.stem.removeprefix("test_").split("_")[0])
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.List):
                continue
            is_golden = any(_GOLDEN in target.id.lower() for target in node.targets if isinstance(target, ast.Name))
            for pair in node.value.elts:
                text, sentences = pair.args if isinstance(pair, ast.Call) else getattr(pair, "elts", (None, None))
                source = f"pySBD {_GOLDEN}" if is_golden else "pySBD"
                yield Case(source, language, ast.literal_eval(text), tuple(ast.literal_eval(sentences)))


def _ruby_string(literal: str) -> str:
    if literal.startswith("'"):
        return re.sub(r"\\([\\'])", r"\1", literal[1:-1])
    known = {"n": "\n", "r": "\r", "t": "\t"}
    return re.sub(r"\\(.)", lambda match: known.get(match[1], match[1]), literal[1:-1])


def pragmatic_cases(folder: Path) -> Iterator[Case]:
    """The cases of spec/: a segmenter is made of a text, and its sentences are compared with a list."""
    for path in sorted((folder / "spec").rglob("*_spec.rb")):
        content = path.read_text(encoding="utf-8")
        golden_end = content.find("describe '#segment'") if path.parent.name == "languages" else 0
        for match in _RUBY_CASE.finditer(content):
            option = _LANGUAGE_OPTION.search(match["options"])
            sentences = [_ruby_string(literal) for literal in _RUBY_STRING.findall(match["sentences"])]
            source = f"pragmatic {_GOLDEN}" if match.start() < golden_end else "pragmatic"
            yield Case(source, option[1] if option else "en", _ruby_string(match["text"]), tuple(sentences))


def sentencex_cases(folder: Path) -> Iterator[Case]:
    """The cases of tests/LANGUAGE.txt: a text, `---`, its sentences, `===`."""
    for path in sorted((folder / "tests").glob("??.txt")):
        content = re.sub(r"^#.*\n", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        for case in content.split("\n===\n"):
            text, rule, sentences = case.strip().partition("\n---\n")
            if rule:
                yield Case("sentencex", path.stem, text, tuple(filter(str.strip, sentences.split("\n"))))


def cases_of(folder: Path) -> list[Case]:
    """The cases of a checkout that a splitter of lines can be asked, without repetitions."""
    found = [*pysbd_cases(folder), *pragmatic_cases(folder), *sentencex_cases(folder)]
    lines = (dataclasses.replace(case, sentences=tuple(map(_joined, case.sentences))) for case in found)
    return [
        case
        for case in dict.fromkeys(lines)
        if "\n" not in case.text.strip() and _without_space(case.text) == _without_space("".join(case.sentences))
    ]


def _joined(text: str) -> str:
    return " ".join(text.split())


def _without_space(text: str) -> str:
    return "".join(text.split())


def split(language: str, text: str) -> list[str]:
    """The sentences of a text by the rules of a language, without training Punkt."""
    choice = named_choice(language)
    if choice.needs_training:
        choice = choice.after_training(None, 0)
    return [_joined(sentence.decode()) for sentence in choice.splitter().split(text.strip().encode())]


def split_by(checkout: Path, cases: list[Case]) -> list[list[str]]:
    """The sentences of the cases' texts by another checkout's rules."""
    questions = json.dumps([(case.language, case.text) for case in cases])
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    command = [sys.executable, str(Path(__file__).resolve()), "--split"]
    run = subprocess.run(
        command, env=environment, cwd=checkout, input=questions, capture_output=True, text=True, check=True
    )
    answers: list[list[str]] = json.loads(run.stdout)
    return answers


def _rows(cases: list[Case], results: list[list[list[str]]]) -> Iterator[str]:
    """A row for each set and language, and one for each set: how many cases there are, and how many each got right."""
    totals: Counter[tuple[str, str]] = Counter()
    right: list[Counter[tuple[str, str]]] = [Counter() for _ in results]
    for number, case in enumerate(cases):
        for key in ((case.source, case.language), (case.source.split(" ")[0], "all")):
            totals[key] += 1
            for counts, result in zip(right, results, strict=True):
                counts[key] += tuple(result[number]) == case.sentences
    for source, language in sorted(totals):
        counted = [str(counts[source, language]) for counts in right]
        yield f"| {' | '.join((source, language, str(totals[source, language]), *counted))} |"


def main(arguments: list[str] | None = None) -> None:
    """Prints the counts, or the cases of a language that are not split as their set says."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("checkouts", nargs="*", type=Path, help="copies of the repositories of the sets")
    parser.add_argument("--before", type=Path, metavar="MASKMILL", help="another checkout of maskmill")
    parser.add_argument("--print", dest="language", help="print the cases of a language that are split otherwise")
    parser.add_argument("--split", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.split:
        print(json.dumps([split(language, text) for language, text in json.load(sys.stdin)]))
        return
    cases = [case for folder in options.checkouts for case in cases_of(folder)]
    here = [split(case.language, case.text) for case in cases]
    results = [here] if options.before is None else [split_by(options.before, cases), here]
    if options.language:
        for number, case in enumerate(cases):
            if case.language == options.language and tuple(here[number]) != case.sentences:
                found = [" | ".join(result[number]) for result in results]
                print("\n".join((f"{case.source}: {' | '.join(case.sentences)}", *found)), end="\n\n")
        return
    heads = ("set", "language", "cases", *("before", "now")[-len(results) :])
    print(f"| {' | '.join(heads)} |\n|---|---|{'---:|' * (len(heads) - 2)}")
    print("\n".join(_rows(cases, results)))


if __name__ == "__main__":
    main()
