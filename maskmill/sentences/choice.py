"""The choice of the rules that split an input's sentences: those that the user names, or those of its language.

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

_SAMPLE_BYTES = 64 << 10  # of an input's text, from which its script is detected

Why = Literal["option", "dump", "text", "script"]


@dataclass(frozen=True, kw_only=True)
class LanguageName:
    """A language's English name, and the scripts it is written in, by the first word of their letters' names."""

    name: str
    scripts: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SentenceChoice:
    """The rules that split the sentences of an input, and the reason for them.

    rules: of the language or the script. why: "option": --language names them; "dump": its <siteinfo> names the
    language; "text": detected from its words; "script": the language is unknown, and the rules are those of `script`,
    in which the text begins. script: as in LanguageName; empty unless `why` is "script". parameters: the folder of
    trained parameters, if the rules use one. text_bytes: how much of the inputs' text Punkt was trained on, or the size
    of a text too short for that; None if Punkt is not trained for the choice, or not yet.
    """

    rules: SentenceRules
    why: Why
    script: str = ""
    parameters: ParametersFolder | None = None
    text_bytes: int | None = None

    @property
    def by_punkt_alone(self) -> "SentenceChoice":
        """The choice with the same parameters, and Punkt's decisions unchanged by a language's rules."""
        return dataclasses.replace(self, rules=SentenceRules(language=self.rules.language, punkt=self.rules.punkt))

    @property
    def needs_training(self) -> bool:
        """True if Punkt must be trained on the inputs before the choice can be used."""
        return self.rules.punkt == TRAINED and self.parameters is None

    def after_training(self, parameters: ParametersFolder | None, text_bytes: int) -> "SentenceChoice":
        """Return the choice after Punkt's training: with its parameters, or without Punkt if the text was too short."""
        rules = self.rules if parameters is not None else dataclasses.replace(self.rules, punkt=None)
        return dataclasses.replace(self, rules=rules, parameters=parameters, text_bytes=text_bytes)

    def to_json(self) -> str:
        """Return the choice as JSON, which `from_json` reads."""
        return json.dumps(dataclasses.asdict(self), ensure_ascii=False, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "SentenceChoice":
        """Return the choice that `to_json` wrote; for an empty text, Punkt's English parameters."""
        if not text:
            return cls(rules=SentenceRules(language="", punkt="english"), why="option")
        fields = json.loads(text)
        rules, parameters = fields.pop("rules"), fields.pop("parameters")
        return cls(
            rules=SentenceRules(**{**rules, "words": tuple(rules["words"])}),
            parameters=None if parameters is None else ParametersFolder(**parameters),
            **fields,
        )

    def splitter(self, output: str = "", *, rules: CharacterRules = "nltk-3.10.4") -> SentenceSplitter:
        """Return the splitter of the choice.

        Args:
          output: the directory of the build; its trained parameters are below it.
          rules: as for SentenceSplitter.

        Raises:
          UnusableInputError: the parameters are missing or damaged.
        """
        parameters: PunktParameters | None = None
        if self.parameters is not None:
            parameters = read_parameters(self.parameters.place(output))
        return SentenceSplitter(self.rules, rules=rules, parameters=parameters)

    @property
    def expected_scripts(self) -> tuple[str, ...]:
        """The scripts that the text is expected to have; empty if they are unknown."""
        if self.script:
            return _WRITTEN_WITH.get(self.script, (self.script,))
        known = language_names().get(_code_of(self.rules))
        return known.scripts if known is not None else ()

    @property
    def name(self) -> str:
        """The choice's name in reports: the language's name or code, or its script."""
        if self.script:
            return f"{script_name(self.script)} script"
        code = _code_of(self.rules)
        known = language_names().get(code)
        return known.name if known is not None else code or (self.rules.punkt or "").capitalize()


# The scripts for which Punkt is trained: full stops end their sentences, and capitals begin them. In a script without
# capitals, Punkt would take a verb that ends most of its sentences for an abbreviation.
_TRAINABLE = frozenset(("LATIN", "CYRILLIC", "GREEK"))

# A text that begins with letters of one of these scripts also has the others.
_WRITTEN_WITH = dict.fromkeys(("CJK", "HIRAGANA", "KATAKANA"), ("CJK", "HIRAGANA", "KATAKANA"))


@functools.cache
def language_names() -> dict[str, LanguageName]:
    """Return the languages' English names and scripts, by code."""
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
    """Return the code of the rules' language; for a plain name of Punkt parameters, that name's code; else ""."""
    if rules.language:
        return known_code(rules.language) or rules.language
    return _codes_by_name().get(rules.punkt or "", "") if rules.is_plain_punkt else ""


def name_of(code: str) -> str:
    """Return the English name of a language by its code; the code itself if it is unknown."""
    known = known_code(code)
    return language_names()[known].name if known else code


def known_code(code: str) -> str:
    """Return a code as data/language_names.tsv has it (`zh-hans` counts as `zh`); "" if the file lacks it."""
    return next((known for known in codes_of(code) if known in language_names()), "")


def named_choice(language: str) -> SentenceChoice:
    """Return the choice that --language names: a code, a name of Punkt parameters, an English name, or a folder.

    Raises:
      UnusableInputError: `language` names none of these, or the folder's files cannot be used.
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
    """Return whether Punkt parameters of this name come with the package, or are in NLTK's data on this machine."""
    return language.isidentifier() and (is_bundled(language) or installed_checksum(language) is not None)


def _rules_of_code(code: str) -> SentenceRules:
    return _to_train(rules_for(code), language_names()[known_code(code)].scripts)


def _to_train(rules: SentenceRules, scripts: Iterable[str]) -> SentenceRules:
    """Return the rules; if they have no parameters and one of the scripts is trainable, Punkt is to be trained."""
    is_fit = not rules.by_spaces and not _TRAINABLE.isdisjoint(scripts)
    return dataclasses.replace(rules, punkt=TRAINED) if rules.punkt is None and is_fit else rules


def _choice_of_folder(folder: str) -> SentenceChoice:
    """Return the choice of the Punkt parameters in a folder, with the rules of the language that it is named after."""
    code = known_code(files.base_name(folder.rstrip("/")))
    rules = dataclasses.replace(rules_for(code), punkt=TRAINED) if code else SentenceRules(language="", punkt=TRAINED)
    return SentenceChoice(rules=rules, why="option", parameters=describe_folder(folder))


def sample_of(texts: Iterable[bytes]) -> str:
    """Return the beginning of texts (UTF-8), from which their language is detected."""
    return "".join(beginning_of(texts, _SAMPLE_BYTES))


def choice_of_input(language: str, texts: Iterable[bytes]) -> SentenceChoice:
    """Return the choice for an input by the language that a dump names, or by the words or script of its beginning.

    Args:
      language: the code that a dump names; empty for other inputs.
      texts: its documents, UTF-8.
    """
    if known_code(language):
        return choice_of_dump(language)
    sample = sample_of(texts)
    return choice_of_language(detect_language(sample.encode()), sample)


def choice_of_dump(code: str) -> SentenceChoice:
    """Return the choice for a dump whose <siteinfo> names a language."""
    return SentenceChoice(rules=_rules_of_code(code), why="dump")


def choice_of_language(found: Detection, sample: str) -> SentenceChoice:
    """Return the choice for a text: by the language detected from its words if that is sure, else by its script."""
    by_script = choice_of_text(sample)
    if not found.is_sure or by_script.script not in language_names()[found.language].scripts:
        return by_script
    return SentenceChoice(rules=_rules_of_code(found.language), why="text")


def choice_of_document(language: str) -> SentenceChoice | None:
    """Return the choice for one document of several languages, for which Punkt is never trained; None if unknown.

    language: an ISO 639 code of two or three letters, or an English name.
    """
    code = known_code(language) or _codes_by_name().get(language.lower(), "")
    code = codes_by_long_code().get(codes_of(language)[1], code)
    if not code:
        return None
    choice = SentenceChoice(rules=_rules_of_code(code), why="text")
    return choice.after_training(None, 0) if choice.needs_training else choice


def names_several(script: str) -> bool:
    """Return whether several languages with rules are written in a script, so that its words must decide."""
    return sum(script in language_names()[code].scripts for code in codes_by_long_code().values()) > 1


def choice_of_text(sample: str) -> SentenceChoice:
    """Return the choice for a text of an unknown language, by the script of its beginning."""
    scripts = scripts_of(sample)
    script = max(sorted(scripts), key=lambda name: scripts[name], default="LATIN")
    return SentenceChoice(rules=_to_train(rules_for_script(sample), (script,)), why="script", script=script)


def script_name(script: str) -> str:
    """Return the name of a script in reports; `script` is as in LanguageName."""
    return {"CJK": "Chinese", "HIRAGANA": "Japanese", "HANGUL": "Korean"}.get(script, script.capitalize())


def known_scripts() -> frozenset[str]:
    """Return the scripts whose sentence-ending marks are known: those of the languages that have rules."""
    names = language_names()
    of_languages = [script for code in rule_data()["language"] if code in names for script in names[code].scripts]
    return frozenset((*rule_data()["script"], *of_languages))
