"""Which rules split the sentences of an input, and why: those that the user names, or the input's own.

A choice is made for each input file (maskmill/text_shards/sentence_choice.py) and travels with the file's description
as JSON. Names of languages and their scripts are in data/language_names.tsv.
"""

import dataclasses
import difflib
import functools
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from typing import Literal

from maskmill.characters.classes import CharacterRules
from maskmill.errors import UnusableInputError
from maskmill.sentences.detection import Detection, codes_by_long_code, detect_language
from maskmill.sentences.punkt import PunktParameters, SentenceSplitter, installed_checksum, is_bundled
from maskmill.sentences.rules import TRAINED, SentenceRules, codes_of, rules_for, rules_for_script, scripts_of
from maskmill.sentences.rules import data as rule_data
from maskmill.sentences.training import ParametersFolder, beginning_of, describe_folder, read_parameters
from maskmill.storage import files

AUTO = "auto"  # the value of --language with which the input decides

_SAMPLE_BYTES = 64 << 10  # of an input's text, by which its script is told

Why = Literal["option", "dump", "text", "script"]


@dataclass(frozen=True, kw_only=True)
class LanguageName:
    """A language's English name, and the scripts it is written in, by the first word of their letters' names."""

    name: str
    scripts: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SentenceChoice:
    """How the sentences of an input are split, and why.

    rules: of the language or the script. why: "option": --language names them; "dump": its <siteinfo> names the
    language; "text": its words say it; "script": nothing says a language that is known, and the text's beginning is in
    `script`. script: as in
    LanguageName, where it decided. parameters: those in a folder, where the rules take such. text_bytes: how much of
    the inputs' text Punkt was trained on, or was too little for that; None where Punkt was not to be trained, or is yet
    to be.
    """

    rules: SentenceRules
    why: Why
    script: str = ""
    parameters: ParametersFolder | None = None
    text_bytes: int | None = None

    @property
    def by_punkt_alone(self) -> "SentenceChoice":
        """The same parameters, with nothing laid over Punkt's decisions."""
        return dataclasses.replace(self, rules=SentenceRules(language=self.rules.language, punkt=self.rules.punkt))

    @property
    def needs_training(self) -> bool:
        """True if Punkt is to be trained on the inputs before the choice can be used."""
        return self.rules.punkt == TRAINED and self.parameters is None

    def after_training(self, parameters: ParametersFolder | None, text_bytes: int) -> "SentenceChoice":
        """Return the choice once Punkt is trained: with its parameters; without any where there was too little text."""
        rules = self.rules if parameters is not None else dataclasses.replace(self.rules, punkt=None)
        return dataclasses.replace(self, rules=rules, parameters=parameters, text_bytes=text_bytes)

    def to_json(self) -> str:
        """Return the choice as text, which `from_json` reads."""
        return json.dumps(dataclasses.asdict(self), ensure_ascii=False, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "SentenceChoice":
        """Return the choice that `to_json` has written; Punkt's English parameters for an empty text."""
        if not text:
            return cls(rules=SentenceRules(language="", punkt="english"), why="option")
        given = json.loads(text)
        rules, parameters = given.pop("rules"), given.pop("parameters")
        return cls(
            rules=SentenceRules(**{**rules, "words": tuple(rules["words"])}),
            parameters=None if parameters is None else ParametersFolder(**parameters),
            **given,
        )

    def splitter(self, output: str = "", *, rules: CharacterRules = "nltk-3.10.4") -> SentenceSplitter:
        """Return the splitter of the choice.

        Args:
          output: the directory of the build, where Punkt was trained for it.
          rules: as for SentenceSplitter.

        Raises:
          UnusableInputError: the parameters are not there, or damaged.
        """
        parameters: PunktParameters | None = None
        if self.parameters is not None:
            parameters = read_parameters(self.parameters.place(output))
        return SentenceSplitter(self.rules, rules=rules, parameters=parameters)

    @property
    def expected_scripts(self) -> tuple[str, ...]:
        """The scripts that the text can be expected to have; empty where nothing is known."""
        if self.script:
            return _WRITTEN_WITH.get(self.script, (self.script,))
        known = language_names().get(_code_of(self.rules))
        return known.scripts if known is not None else ()

    @property
    def name(self) -> str:
        """What a user calls it: the language's name or code, or its script."""
        if self.script:
            return f"{script_name(self.script)} script"
        code = _code_of(self.rules)
        known = language_names().get(code)
        return known.name if known is not None else code or (self.rules.punkt or "").capitalize()


# The scripts for which Punkt is trained: full stops end their sentences, and capitals begin them. Without capitals, a
# verb that ends most of its sentences would pass for an abbreviation.
_TRAINABLE = frozenset(("LATIN", "CYRILLIC", "GREEK"))

# A text whose beginning has letters of one of these scripts mixes it with others.
_WRITTEN_WITH = dict.fromkeys(("CJK", "HIRAGANA", "KATAKANA"), ("CJK", "HIRAGANA", "KATAKANA"))


@functools.cache
def language_names() -> dict[str, LanguageName]:
    """English names and scripts by code."""
    path = resources.files("maskmill.sentences") / "data" / "language_names.tsv"
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return {code: LanguageName(name=name, scripts=tuple(scripts.split(" "))) for code, name, scripts in rows}


@functools.cache
def _codes_by_name() -> dict[str, str]:
    codes: dict[str, str] = {}
    for code, language in language_names().items():
        codes.setdefault(language.name.lower(), code)
    return codes


def _code_of(rules: SentenceRules) -> str:
    """Return the code of the rules' language; where they are only Punkt's of a name, that of this name; else empty."""
    if rules.language:
        return known_code(rules.language) or rules.language
    return _codes_by_name().get(rules.punkt or "", "") if rules.is_plain_punkt else ""


def name_of(code: str) -> str:
    """Return the English name of a language by its code; the code itself if it is unknown."""
    known = known_code(code)
    return language_names()[known].name if known else code


def known_code(code: str) -> str:
    """Return a code as data/language_names.tsv has it: `zh-hans` counts as `zh`; empty if it is not there."""
    return next((known for known in codes_of(code) if known in language_names()), "")


def named_choice(language: str) -> SentenceChoice:
    """Return the choice that --language names: a code, the name of Punkt parameters, an English name, a folder of
    parameters.

    Raises:
      UnusableInputError: it names none of these, or the folder's files cannot be used.
    """
    if "/" in language or os.sep in language:
        return _choice_of_folder(language)
    if known_code(language):
        return SentenceChoice(rules=_rules_of_code(codes_of(language)[0]), why="option")
    if _is_punkt_name(language):
        return SentenceChoice(rules=SentenceRules(language="", punkt=language), why="option")
    by_name = _codes_by_name()
    if language.lower() in by_name:
        return SentenceChoice(rules=_rules_of_code(by_name[language.lower()]), why="option")
    if os.path.isdir(language):
        return _choice_of_folder(language)
    nearest = difflib.get_close_matches(language.lower(), [*by_name, *language_names()], n=1)
    hint = f" (the nearest is {nearest[0]})" if nearest else ""
    raise UnusableInputError(
        f"--language={language} names no language that maskmill knows{hint}; give a code such as uk, a name in "
        "English, a folder of Punkt parameters, or auto."
    )


def _is_punkt_name(language: str) -> bool:
    """Return whether Punkt parameters of this name come with the package, or are among NLTK's data on this machine."""
    return language.isidentifier() and (is_bundled(language) or installed_checksum(language) is not None)


def _rules_of_code(code: str) -> SentenceRules:
    return _to_train(rules_for(code), language_names()[known_code(code)].scripts)


def _to_train(rules: SentenceRules, scripts: Iterable[str]) -> SentenceRules:
    """Return the rules, with Punkt to be trained where they have no parameters and one of the scripts is fit for it."""
    is_fit = not rules.by_spaces and not _TRAINABLE.isdisjoint(scripts)
    return dataclasses.replace(rules, punkt=TRAINED) if rules.punkt is None and is_fit else rules


def _choice_of_folder(folder: str) -> SentenceChoice:
    """Punkt with the parameters in a folder, and what is known of the language whose code is the folder's name."""
    code = known_code(files.base_name(folder.rstrip("/")))
    rules = dataclasses.replace(rules_for(code), punkt=TRAINED) if code else SentenceRules(language="", punkt=TRAINED)
    return SentenceChoice(rules=rules, why="option", parameters=describe_folder(folder))


def sample_of(texts: Iterable[bytes]) -> str:
    """Return the beginning of texts (UTF-8), by which their language is told."""
    return "".join(beginning_of(texts, _SAMPLE_BYTES))


def choice_of_input(language: str, texts: Iterable[bytes]) -> SentenceChoice:
    """Return the choice of an input itself: by the language that a dump names, or by the words or the script of its
    beginning.

    Args:
      language: the code that a dump names; empty for another input.
      texts: of its documents, UTF-8.
    """
    if known_code(language):
        return choice_of_dump(language)
    sample = sample_of(texts)
    return choice_of_language(detect_language(sample.encode()), sample)


def choice_of_dump(code: str) -> SentenceChoice:
    """Return the choice for a dump whose <siteinfo> names a language."""
    return SentenceChoice(rules=_rules_of_code(code), why="dump")


def choice_of_language(found: Detection, sample: str) -> SentenceChoice:
    """Return the choice for a text by the language of its words if that is sure, else by its script."""
    by_script = choice_of_text(sample)
    if not found.is_sure or by_script.script not in language_names()[found.language].scripts:
        return by_script
    return SentenceChoice(rules=_rules_of_code(found.language), why="text")


def choice_of_document(language: str) -> SentenceChoice | None:
    """Return the choice for one document of several languages, whose Punkt is never trained; None if it is unknown.

    language: its code, of two letters or of three, or its English name.
    """
    code = known_code(language) or _codes_by_name().get(language.lower(), "")
    code = codes_by_long_code().get(codes_of(language)[1], code)
    if not code:
        return None
    choice = SentenceChoice(rules=_rules_of_code(code), why="text")
    return choice.after_training(None, 0) if choice.needs_training else choice


def names_several(script: str) -> bool:
    """Return whether there are rules of several languages that are written in a script, so that a text's words must say
    it.
    """
    return sum(script in language_names()[code].scripts for code in codes_by_long_code().values()) > 1


def choice_of_text(sample: str) -> SentenceChoice:
    """Return the choice for a text of an unknown language, by the script of its beginning."""
    scripts = scripts_of(sample)
    script = max(sorted(scripts), key=lambda name: scripts[name], default="LATIN")
    return SentenceChoice(rules=_to_train(rules_for_script(sample), (script,)), why="script", script=script)


def script_name(script: str) -> str:
    """Return what a user calls a script; `script` is as in LanguageName."""
    return {"CJK": "Chinese", "HIRAGANA": "Japanese", "HANGUL": "Korean"}.get(script, script.capitalize())


def known_scripts() -> frozenset[str]:
    """Return the scripts whose marks at the ends of sentences are known: those of languages that there are rules
    for.
    """
    names = language_names()
    of_languages = [script for code in rule_data()["language"] if code in names for script in names[code].scripts]
    return frozenset((*rule_data()["script"], *of_languages))
