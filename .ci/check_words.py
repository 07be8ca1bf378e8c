"""Find words that make a reader read twice (CONTRIBUTING.md, "Words"): in docstrings, comments and pages.

.venv/bin/python .ci/check_words.py          # lists each place; exits 1 if there is one
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
CODE = ("maskmill", "pipelines", "transforms", "training", "tools", "deploy", "benchmarks")

# A form, and what to write instead. Code between backticks is left out.
FORMS = {
    r"(?<!left )(?<!lags )\bbehind\b(?! (a|the|its) (proxy|scenes|load balancer))": "after",
    r"\b(is|are|was|were|be|been) told\b": "name who tells whom, or say 'gets', 'knows'",
    r"\bgone? through\b": "read, covered",
    r"\b[Mm]end(s|ed|ing)?\b": "fix, correct",
    r"\bis none of\b": "is not a",
}
# A function's docstring says with a verb what it does, that of a class or a module with a noun what it is.
OPENING = r"^(What|Whether|How|Where|Why)\b"


def lines_of_page(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a page that are not in blocks of code, numbered."""
    is_code = False
    for number, line in enumerate(text.split("\n"), 1):
        is_code ^= line.startswith("```")
        if not is_code:
            yield number, line


def docstrings_of(text: str) -> Iterator[tuple[int, str]]:
    """Yield the docstrings of a program, with the number of their first line."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (said := ast.get_docstring(node)):
            yield node.body[0].lineno, said


def comments_of(text: str) -> Iterator[tuple[int, str]]:
    """Yield the comments of a program, numbered."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def places_of(name: str) -> Iterator[tuple[int, str, str]]:
    """Yield the places of a file with such a form: the line, what it says there, and what to write instead."""
    text = (ROOT / name).read_text("utf-8")
    if name.endswith(".md"):
        lines = list(lines_of_page(text))
    else:
        docstrings = list(docstrings_of(text))
        for line, said in docstrings:
            if re.match(OPENING, said):
                yield line, said.partition("\n")[0], "begin with a verb or a noun"
        lines = [(line + place, one) for line, said in docstrings for place, one in enumerate(said.split("\n"))]
        lines += comments_of(text)
    for line, said in lines:
        for form, instead in FORMS.items():
            if re.search(form, re.sub(r"`[^`]*`", "", said)):
                yield line, said.strip(), instead


def main() -> int:
    """Print each place with such a form; return 1 if there is one."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    is_bad = False
    for name in listed:
        if (name.endswith(".md") and name != "CHANGELOG.md") or (name.endswith(".py") and name.startswith(CODE)):
            for line, said, instead in places_of(name):
                is_bad = True
                print(f"{name}:{line}: {said[:90]!r}: {instead}")
    return int(is_bad)


if __name__ == "__main__":
    sys.exit(main())
