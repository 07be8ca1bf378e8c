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

# A form, and what to write instead.
FORMS = {
    r"(?<!left )(?<!lags )\bbehind\b(?! (a|the|its) (proxy|scenes|load balancer))": "after",
    r"\b(is|are|was|were|be|been) told\b": "name who tells whom, or say 'gets', 'knows'",
    r"\bgone? through\b": "read, covered",
    r"\b[Mm]end(s|ed|ing)?\b": "fix, correct",
    r"\bis none of\b": "is not a",
    r"\bnobody's business\b|\bnone of the user's\b": "internal",
    r"\bthere is none of its own\b": "name what is missing",
}
# How no docstring begins: with a verb it says what the function does, with a noun what the class or the module is.
OPENINGS = re.compile(r"(What|Whether|How|Where|Why|Is told|Says what)\b")


def prose_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the comments and docstrings of a Python file, or the lines of a page outside code, with their lines."""
    text = path.read_text("utf-8")
    if path.suffix == ".md":
        is_code = False
        for number, line in enumerate(text.split("\n"), 1):
            is_code ^= line.startswith("```")
            if not is_code:
                yield number, re.sub(r"`[^`]*`", "", line)
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (said := ast.get_docstring(node)):
            line = node.body[0].lineno
            if OPENINGS.match(said):
                yield line, f"{said.split()[0]} \N{ELECTRIC ARROW}"
            for offset, one in enumerate(said.split("\n")):
                yield line + offset, re.sub(r"`[^`]*`", "", one)


def main() -> int:
    """Print each place with a forbidden form, and how often each form was found; return 1 if there is one."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    counts = dict.fromkeys([*FORMS, OPENINGS.pattern], 0)
    for name in listed:
        if not (name.endswith(".md") or (name.endswith(".py") and name.startswith(CODE))) or name == "CHANGELOG.md":
            continue
        for line, said in prose_of(ROOT / name):
            if said.endswith("\N{ELECTRIC ARROW}"):
                counts[OPENINGS.pattern] += 1
                print(f"{name}:{line}: a docstring begins with {said.split()[0]!r}: begin with a verb or a noun")
            for form, instead in FORMS.items():
                if re.search(form, said):
                    counts[form] += 1
                    print(f"{name}:{line}: {said.strip()[:90]!r}: {instead}")
    print(*(f"{count:5} {form}" for form, count in counts.items()), sep="\n")
    return int(any(counts.values()))


if __name__ == "__main__":
    sys.exit(main())
