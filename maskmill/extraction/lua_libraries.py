"""Answers the calls of Scribunto's libraries (mw.title, mw.language, …) to MediaWiki, as far as a dump permits.

Source: https://www.mediawiki.org/wiki/Extension:Scribunto/Lua_reference_manual. Facts that a dump lacks are those of
most pages of an encyclopedia: pages exist, nothing is protected, no message has another text.
"""

import hashlib
import json
import re
import urllib.parse
from collections.abc import Callable, Mapping
from html.entities import html5
from typing import Any

from maskmill.extraction.language_tables import group_digits

_CONTENT = 0
_TEMPLATE, _MODULE = 10, 828
_RIGHT_TO_LEFT = frozenset(
    ("ar", "arc", "ary", "arz", "azb", "ckb", "dv", "fa", "glk", "he", "ks", "lrc", "mzn", "nqo", "pnb", "ps", "sd",
     "ug", "ur", "yi")
)  # fmt: skip
_HASHES = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512")
_PRESERVES_KEYS = 1  # a flag of mw.text.jsonDecode
_CODE = re.compile(r"[A-Za-z][A-Za-z0-9-]{1,30}")


class HostError(Exception):
    """A module requested something that does not exist; the module sees the text."""


class Libraries:
    """The functions and options of Scribunto's libraries.

    site: as described in lua_process.py: language, name, namespaces (names by number), separators (of groups of digits
    and of the fraction), case. ask: asks the parent process.
    """

    def __init__(self, site: Mapping[str, Any], ask: Callable[..., Any]) -> None:
        self._site = site
        self._ask = ask
        self._language = site["language"]
        self._numbers = {
            name.lower(): int(number) for number, names in site["namespaces"].items() for name in names if name
        }
        self._names: dict[str, Mapping[str, str]] = {}

    def functions(self, library: str) -> dict[str, Callable[..., Any]]:
        """Return the functions that a library calls; `library` is its name without `mw.`."""
        found: dict[str, Callable[..., Any]] = getattr(self, f"_of_{library}")()
        return found

    def options(self) -> dict[str, Any]:
        """Return the setup values of each library."""
        return {
            "site": {
                "siteName": self._site["name"],
                "server": "//" + self._language + ".wikipedia.org",
                "scriptPath": "/w",
                "stylePath": "/w/skins",
                "currentVersion": "1.43.0",
                "stats": dict.fromkeys(("pages", "articles", "files", "edits", "users", "activeUsers", "admins"), 0),
                "namespaces": {number: self._namespace(number) for number in map(int, self._site["namespaces"])},
            },
            "uri": {"defaultUrl": ""},
            "ustring": {"stringLengthLimit": 2_000_000, "patternLengthLimit": 10_000},
            "message": {"lang": self._language},
            "title": {"NS_MEDIA": -2},
            "text": {
                "comma": ", ",
                "and": " and " if self._language == "en" else ", ",
                "ellipsis": "...",
                "nowiki_protocols": {},
            },
            "html": {"uniqPrefix": "\x7f'\"`UNIQ-", "uniqSuffix": "-QINU`\"'\x7f"},
        }

    # ---- mw.site

    def _namespace(self, number: int) -> dict[str, Any]:
        names = self._site["namespaces"][str(number)]
        is_talk = number > 0 and number % 2 == 1
        described = {
            "id": number,
            "name": names[0],
            "displayName": names[0],
            "canonicalName": names[-1],
            "aliases": list(names[1:]),
            "hasSubpages": number not in (_CONTENT, 6, 14),
            "hasGenderDistinction": False,
            "isCapitalized": self._site["case"] == "first-letter",
            "isContent": number == _CONTENT,
            "isIncludable": True,
            "isMovable": True,
            "isSubject": not is_talk,
            "isTalk": is_talk,
            "defaultContentModel": "Scribunto" if number == _MODULE else "wikitext",
            "subject": number - is_talk,
        }
        if number >= 0 and str(number - is_talk + 1) in self._site["namespaces"]:
            talk = number - is_talk + 1
            described |= {"talk": talk, "associated": number - 1 if is_talk else talk}
        return described

    def _of_site(self) -> dict[str, Callable[..., Any]]:
        return {
            "pagesInCategory": lambda *_: 0,
            "pagesInNamespace": lambda *_: 0,
            "usersInGroup": lambda *_: 0,
            "interwikiMap": lambda *_: {},
            "getNsIndex": lambda name: self._numbers.get(str(name).replace("_", " ").strip().lower()),
        }

    # ---- mw.title

    def title_data(self, title: str, default: int = _CONTENT) -> dict[str, Any] | None:
        """Return the data of a title object for a text; None if the text cannot be a title."""
        text, _, fragment = title.replace("_", " ").strip().partition("#")
        number, rest = default, text
        prefix, colon, name = text.partition(":")
        if colon and not prefix.strip():
            number, rest = _CONTENT, name
        elif colon and prefix.strip().lower() in self._numbers:
            number, rest = self._numbers[prefix.strip().lower()], name
        return self._title_object(number, rest, fragment)

    def _title_object(self, number: int, text: str, fragment: str = "", interwiki: str = "") -> dict[str, Any] | None:
        text = re.sub(r"[ _]+", " ", text).strip()
        if (not text and not fragment) or re.search(r"[<>\[\]{}|\n]", text):
            return None
        if self._site["case"] == "first-letter":
            text = text[:1].upper() + text[1:]
        name = self._site["namespaces"][str(number)][0]
        full = f"{name}:{text}" if name else text
        return {
            "isCurrentTitle": False,
            "isLocal": not interwiki,
            "interwiki": interwiki,
            "namespace": number,
            "nsText": name,
            "text": text,
            "fragment": fragment,
            "thePartialUrl": urllib.parse.quote(full.replace(" ", "_"), safe="/:"),
        }

    def _number_of(self, namespace: Any) -> int:
        if isinstance(namespace, str):
            number = self._numbers.get(namespace.replace("_", " ").strip().lower())
            if number is None and namespace.strip():
                raise HostError(f"there is no namespace {namespace}")
            return number or _CONTENT
        number = int(namespace or 0)
        if str(number) not in self._site["namespaces"]:
            raise HostError(f"there is no namespace {number}")
        return number

    def _new_title(self, text: Any, namespace: Any = None) -> Any:
        return self.title_data(text, self._number_of(namespace)) if isinstance(text, str) else None

    def _make_title(self, namespace: Any, text: Any, fragment: Any = None, interwiki: Any = None) -> Any:
        return self._title_object(self._number_of(namespace), str(text), str(fragment or ""), str(interwiki or ""))

    def _expensive(self, title: str) -> dict[str, Any]:
        exists = bool(self._ask("exists", title))
        return {
            "exists": exists,
            "isRedirect": False,
            "id": int(exists),
            "contentModel": self._namespace((self.title_data(title) or {"namespace": 0})["namespace"])[
                "defaultContentModel"
            ],
        }

    def _of_title(self) -> dict[str, Callable[..., Any]]:
        return {
            "newTitle": self._new_title,
            "makeTitle": self._make_title,
            "getExpensiveData": self._expensive,
            "getUrl": _url,
            "getContent": lambda title: self._ask("module_text", title),
            "getFileInfo": lambda *_: {"exists": True},
            "protectionLevels": lambda *_: {},
            "cascadingProtection": lambda *_: {"sources": False, "restrictions": {}},
            "redirectTarget": lambda *_: None,
        }

    # ---- mw.language

    def _names_in(self, code: str) -> Mapping[str, str]:
        if code not in self._names:
            self._names[code] = self._ask("language_names", code)
        return self._names[code]

    def _language_name(self, code: Any, inside: Any = None) -> str:
        code = str(code).lower()
        return self._names_in(str(inside or code)).get(code, "")

    def _format_number(self, _code: str, number: Any, options: Any = None) -> str:
        text = f"{number:.14g}" if isinstance(number, float) else str(number)
        whole, point, fraction = text.partition(".")
        group, decimal = self._site["separators"]
        if not (isinstance(options, Mapping) and options.get("noCommafy")):
            whole = re.sub(r"\d+\Z", lambda found: group_digits(found[0], group), whole)
        return whole + (decimal + fraction if point else "")

    def _parse_number(self, _code: str, text: Any) -> str:
        group, decimal = self._site["separators"]
        return re.sub(r"[\s\u00a0\u202f]", "", str(text).replace(group, "")).replace(decimal, ".")

    def _of_language(self) -> dict[str, Callable[..., Any]]:
        return {
            "getContLangCode": lambda: self._language,
            "isSupportedLanguage": lambda code: bool(self._language_name(code)),
            "isKnownLanguageTag": lambda code: bool(self._language_name(code)),
            "isValidCode": lambda code: _CODE.fullmatch(code) is not None,
            "isValidBuiltInCode": lambda code: _CODE.fullmatch(code) is not None,
            "fetchLanguageName": self._language_name,
            "fetchLanguageNames": lambda inside=None, _which=None: self._names_in(str(inside or self._language)),
            "getFallbacksFor": lambda code: [] if code == "en" else ["en"],
            "lcfirst": lambda _code, text: text[:1].lower() + text[1:],
            "ucfirst": lambda _code, text: text[:1].upper() + text[1:],
            "lc": lambda _code, text: text.lower(),
            "uc": lambda _code, text: text.upper(),
            "caseFold": lambda _code, text: text.casefold(),
            "formatNum": self._format_number,
            "parseFormattedNumber": self._parse_number,
            "formatDate": lambda _code, form, date="", _local=False: self._ask("format_date", form, str(date or "")),
            "convertPlural": _plural,
            "convertGrammar": lambda _code, word, _case: word,
            "gender": lambda _code, _who, forms, *more: _listed(forms, more)[0],
            "isRTL": lambda code: code.split("-")[0] in _RIGHT_TO_LEFT,
        }

    # ---- the others

    def _of_uri(self) -> dict[str, Callable[..., Any]]:
        return {
            "anchorEncode": lambda text: text.strip().replace(" ", "_"),
            "localUrl": lambda page, *_: _url(page),
            "fullUrl": lambda page, *_: _url(page),
            "canonicalUrl": lambda page, *_: _url(page),
        }

    def _of_ustring(self) -> dict[str, Callable[..., Any]]:
        return {}

    def _of_html(self) -> dict[str, Callable[..., Any]]:
        return {}

    def _of_message(self) -> dict[str, Callable[..., Any]]:
        return {"plain": _message, "check": lambda what, _data: what != "exists"}

    def _of_text(self) -> dict[str, Callable[..., Any]]:
        return {
            "unstrip": lambda text: text,
            "unstripNoWiki": lambda text: text,
            "killMarkers": lambda text: text,
            "getEntityTable": lambda: {f"&{name}": text for name, text in html5.items() if name.endswith(";")},
            "jsonEncode": lambda value, _flags=0: json.dumps(_json_value(value), ensure_ascii=False),
            "jsonDecode": lambda text, flags=0: _lua_value(json.loads(text), keeps=bool(int(flags or 0) & 1)),
        }

    def _of_hash(self) -> dict[str, Callable[..., Any]]:
        return {"listAlgorithms": lambda: list(_HASHES), "hashValue": _hash}


def _url(page: Any, *_: Any) -> str:
    return "/wiki/" + urllib.parse.quote(str(page).replace(" ", "_"), safe="/:")


def _listed(forms: Any, more: tuple[Any, ...]) -> list[str]:
    """Return forms that were passed as a table, or one by one."""
    values = list(forms.values()) if isinstance(forms, Mapping) else [forms, *more]
    return [str(value) for value in values] or [""]


def _plural(_code: str, number: Any, forms: Any, *more: Any) -> str:
    words = _listed(forms, more)
    return words[0] if float(number) == 1 else words[min(1, len(words) - 1)]


def _message(data: Mapping[str, Any]) -> str:
    if "rawMessage" in data:
        parameters = data.get("params") or {}
        return re.sub(r"\$(\d+)", lambda found: _parameter(parameters.get(int(found[1]))), str(data["rawMessage"]))
    keys = data.get("keys") or {1: ""}
    return f"⧼{next(iter(keys.values()))}⧽"


def _parameter(value: Any) -> str:
    if isinstance(value, Mapping):
        value = value.get("raw", value.get("num", value.get("plaintext")))
    return "" if value is None else str(value)


def _hash(name: str, value: str) -> str:
    if name not in _HASHES:
        raise HostError(f"there is no algorithm {name}")
    return hashlib.new(name, value.encode()).hexdigest()


def _json_value(value: Any) -> Any:
    """Return a table in JSON's types: a list if its keys are 1, 2, 3, …"""
    if not isinstance(value, Mapping):
        return int(value) if isinstance(value, float) and value.is_integer() else value
    if value and set(value) == set(range(1, len(value) + 1)):
        return [_json_value(value[number]) for number in range(1, len(value) + 1)]
    return {str(key): _json_value(item) for key, item in sorted(value.items(), key=lambda pair: str(pair[0]))}


def _lua_value(value: Any, *, keeps: bool) -> Any:
    """Return JSON as a table; lists start at 1. keeps: keep list indices from 0, and digits as texts, in keys."""
    if isinstance(value, list):
        return {place: _lua_value(item, keeps=keeps) for place, item in enumerate(value, 0 if keeps else 1)}
    if isinstance(value, dict):
        return {
            int(key) if key.isdigit() and not keeps else key: _lua_value(item, keeps=keeps)
            for key, item in value.items()
        }
    return value
