"""Scribunto modules of a dump: what they give, and that hostile ones do no harm."""

import importlib.util
import multiprocessing
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark.structures import ParameterSet
from made_up.template_expanders import expand_page, make_expander

from maskmill.errors import UnusableInputError
from maskmill.extraction import lua_process
from maskmill.extraction.lua_process import Limits, libraries_folder
from maskmill.extraction.lua_sandbox import TICK
from maskmill.extraction.template_expansion import Expansion, TemplateExpander
from maskmill.text_shards.time_limits import PageTimeError, time_limit

GOOD = """
local p = {}
function p.args(frame)
    local parent = frame:getParent()
    return table.concat({ frame.args[1] or '-', frame.args.x or '-', parent.args[1] or '-', parent:getTitle() }, ',')
end
function p.libraries(frame)
    return table.concat({
        mw.ustring.upper('āb'), mw.text.trim('  x '), mw.language.getContentLanguage():formatNum(1234567.5),
        mw.title.new('Modulis:Good').exists and 'there' or 'gone',
        mw.title.new('Modulis:No such').exists and 'there' or 'gone',
        tostring(mw.html.create('b'):wikitext('bold')), mw.site.namespaces[10].name, mw.text.jsonDecode('[4, 5]')[2],
        mw.language.fetchLanguageName('de', 'en'), mw.language.new('en'):formatDate('j F Y', '2001-09-11'),
    }, ' ')
end
function p.expands(frame)
    return frame:preprocess('{{Hello|' .. frame.args[1] .. '}}')
        .. frame:expandTemplate{ title = 'Hello', args = { 'you' } }
        .. frame:callParserFunction('lc', 'ABC') .. frame:callParserFunction{ name = '#if', args = { 'x', 'yes' } }
        .. frame:extensionTag('nowiki', 'z')
end
function p.page() return mw.title.getCurrentTitle().text end
function p.date() return os.date('%Y-%m-%d', os.time()) end
function p.data() return mw.loadData('Modulis:Data').list[2] .. require('Modulis:Helper').twice('x') end
function p.dated_data() return mw.loadData('Modulis:Dated').day end
function p.data_of_template() return mw.loadData('Modulis:Of template').text end
function p.child(frame) return frame:getParent():newChild{}:getTitle() end
function p.bad_arguments()
    local english, given = mw.language.new('en'), {}
    local function note(...) local ok, why = pcall(...) table.insert(given, type(ok) .. type(why)) end
    note(mw.title.new, 'x', 1 / 0)
    note(mw.loadJsonData, {})
    note(require, 5)
    note(english.formatDate, english, {})
    return table.concat(given, ' ')
end
function p.digits(frame) return #frame:callParserFunction('formatnum', ('1'):rep(30000)) end
function p.random() return math.random(1000) .. ' ' .. math.random(1000) end
function p.addresses() return tostring({}) .. tostring(print) .. tostring(tostring) .. tostring(function() end) end
function p.calls_itself(frame) return 'a' .. frame:preprocess('{{#invoke:Good|calls_itself}}') end
function p.wikidata() return tostring(mw.wikibase.getEntity()) .. #mw.wikibase.getBestStatements('Q1', 'P1') end
return p
"""

# Of hostile functions each is a call that fails, or is refused.
HOSTILE = """
local p = {}
function p.loop() while true do end end
function p.loop_in_pcall() while true do pcall(function() while true do end end) end end
function p.loop_in_handler() xpcall(error, function() while true do end end) while true do end end
function p.gigabyte() return #('x'):rep(2 ^ 30) end
function p.gigabyte_in_pcall() pcall(string.rep, 'x', 2 ^ 30) return 'held' end
function p.table_bomb() local t = {} for i = 1, 1e9 do t[i] = {} end end
function p.deep() local function f() return 1 + f() end return f() end
function p.deep_tables() local t = {} for _ = 1, 1e5 do t = { t } end return mw.text.jsonEncode(t) end
function p.os() return os.execute('true') end
function p.io() return io.open('/etc/passwd') end
function p.debug() return debug.getregistry() end
function p.hook() return debug.sethook() end
function p.coroutine() return coroutine.wrap(function() while true do end end)() end
function p.loads() return loadstring('return 1')() end
function p.loads_file() return dofile('/etc/passwd') end
function p.bytecode() return string.dump(p.loop) end
function p.environment() return setfenv(1, {}) end
function p.outer_environment() return getfenv(0).io end
function p.package() return package.loadlib('libc.so.6', 'system') end
function p.proxy() return newproxy(true) end
function p.python() return python.eval('1') end
function p.error_object() error({}) end
function p.error_nothing() error() end
function p.error_with_metatable() error(setmetatable({}, { __tostring = function() while true do end end })) end
function p.result_that_loops() return setmetatable({}, { __tostring = function() while true do end end }) end
function p.endless_gsub() return (('x'):gsub('', function() while true do end end)) end
function p.sort_that_lies() local t = { 3, 2, 1 } while true do table.sort(t, function() return true end) end end
function p.requires_file() return require('/etc/passwd') end
function p.requires_up() return require('../../../../../../../../etc/passwd') end
function p.long_output() return ('x'):rep(3e6) end
function p.much_data() for _ = 1, 1e5 do mw.loadData('Modulis:Data') end return 'held' end
function p.bad_data() while true do pcall(mw.loadData, 'Modulis:No table') end end
function p.long_question(frame) return frame:preprocess(('{{a|'):rep(1e6)) end
function p.bad_utf8() return error('\\255\\254') end
return p
"""

BREAKS_OUT = """
local p, at_first = {}, math.random(1000)
function p.strings() getmetatable('').__index = function() return 'broken' end return 'done' end
function p.tables() string.rep = nil mw.text.trim = nil table.concat = function() return 'broken' end return 'done' end
function p.globals() _G.tostring = nil _G.leak = 'leaked' return 'done' end
function p.data() mw.loadData('Modulis:Data').list[2] = 'broken' return 'done' end
function p.raw() rawset(mw.loadData('Modulis:Data').list, 2, 'broken') return 'done' end
function p.html() getmetatable(mw.html.create()).__index.done = function() return 'broken' end return 'done' end
function p.address() getmetatable(mw.uri.new()).__tostring = function() return 'broken' end return 'done' end
function p.failing() math.random() error('after a random number') end
function p.looks()
    return tostring(leak) .. (' x '):rep(2) .. mw.text.trim(' y ') .. mw.loadData('Modulis:Data').list[2]
        .. tostring(mw.html.create('b'):done()) .. tostring(mw.uri.new('//a')) .. at_first .. math.random(1000)
end
return p
"""

PAGES = {
    "Hello": "Hello, {{{1|world}}}!",
    "Args": "{{#invoke:Good|args|a|x= b }}",
    "Failing": "a{{#invoke:Hostile|os}}b",
    "#Good": GOOD,
    "#Helper": "return { twice = function(s) return s .. s end }",
    "#Data": "return { list = { 'a', 'b' } }",
    "#Dated": "return { day = os.date('%d') }",
    "#Of template": "return { text = mw.getCurrentFrame():expandTemplate{ title = 'Hello' } }",
    "#Page data": "return { title = mw.title.getCurrentTitle().text }",
    "#Of page": "return { f = function() return mw.loadData('Modulis:Page data').title end }",
    "#Hostile": HOSTILE,
    "#Breaks out": BREAKS_OUT,
    "#Broken": "return {",
    "#Compiled": "\x1bLua",
    "#No table": "return 5",
}  # fmt: skip

# A hundredth of what a build lets them have.
SMALL = Limits(call_instructions=2_000_000, page_instructions=6_000_000, memory=40 << 20, cpu_seconds=1)


@pytest.fixture(scope="module")
def expander() -> Iterator[TemplateExpander]:
    made = make_expander(PAGES, modules=SMALL)
    yield made
    assert made.modules is not None
    made.modules.close()


def call(made: TemplateExpander, text: str, title: str = "Page") -> Expansion:
    (given,) = made.expand(title, [text])
    return given


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{#invoke:Good|args|a|x= b }}", "a,b,-,Page"),
        ("{{Args|c}}", "a,b,c,Taiss:Args"),
        ("{{ #invoke: Good | args }}", "-,-,-,Page"),
        ("{{#invoke:Good|libraries}}", "ĀB x 1,234,567.5 there gone <b>bold</b> Taiss 5 German 11 September 2001"),
        ("{{#invoke:Good|expands|me}}", "Hello, me!Hello, you!abcyes<nowiki>z</nowiki>"),
        ("{{#invoke:Good|page}}", "Page"),
        ("{{#invoke:Good|date}}", "2020-02-03"),
        ("{{#invoke:Good|data}}", "bxx"),
        ("{{#invoke:Good|bad_arguments}}", " ".join(["booleanstring"] * 4)),
        ("{{#invoke:Good|addresses}}", "tablenilfunctionfunction"),
        ("{{#invoke:Good|wikidata}}", "nil0"),
        ("{{#invoke:Good|calls_itself}}", "a" * 10 + '<strong class="error"></strong>'),
    ],
)
def test_what_a_module_gives(expander: TemplateExpander, text: str, expected: str) -> None:
    assert call(expander, text) == Expansion(expected)


def test_what_asked_for_the_page_is_asked_again(expander: TemplateExpander) -> None:
    for title in ("One", "Two"):
        assert call(expander, "{{#invoke:Good|page}}", title).text == title
        assert call(expander, "{{#invoke:Of page|f}}", title).text == title
        assert call(expander, "{{#invoke:Good|child}}", title).text == title
        assert call(expander, "{{Args|c}}", title).text == "a,b,c,Taiss:Args"


def test_random_numbers_are_the_same_on_every_page(expander: TemplateExpander) -> None:
    given = {call(expander, "{{#invoke:Good|random|" + str(number) + "}}").text for number in range(5)}
    assert len(given) == 1


def test_a_fork_has_a_process_of_its_own(expander: TemplateExpander) -> None:
    assert call(expander, "{{#invoke:Good|data}}").text == "bxx"
    modules: Any = expander.modules
    ours = modules._process._process.pid

    def in_fork(answer: Any) -> None:
        given = call(expander, "{{#invoke:Good|data|again}}").text
        answer.send((given, modules._process._process.pid))
        modules.close()

    here, there = multiprocessing.Pipe()
    fork = multiprocessing.get_context("fork").Process(target=in_fork, args=(there,))
    fork.start()
    given, other = here.recv()
    fork.join()
    assert given == "bxx"
    assert other != ours == modules._process._process.pid
    assert call(expander, "{{#invoke:Good|data|at last}}").text == "bxx"


FIRST = ("loop", "gigabyte", "deep", "os", "error_object")  # in every run of the tests


def hostile_functions() -> list[ParameterSet]:
    found = []
    for line in HOSTILE.splitlines():
        if line.startswith("function"):
            name = line.split("p.")[1].split("(")[0]
            found.append(pytest.param(name, marks=() if name in FIRST else pytest.mark.builds))
    return found


def test_the_process_can_open_nothing(expander: TemplateExpander) -> None:
    call(expander, "{{#invoke:Good|data}}")
    modules: Any = expander.modules
    process = Path("/proc") / str(modules._process._process.pid)
    if not process.is_dir():
        pytest.skip("this system has no /proc")
    limits = {line[:25].strip(): line[26:].split()[:2] for line in (process / "limits").read_text().splitlines()}
    assert limits["Max open files"] == limits["Max file size"] == limits["Max processes"] == ["0", "0"]
    assert int(limits["Max address space"][0]) < 2 << 30
    assert sorted(path.name for path in (process / "fd").iterdir()) == ["0", "1", "2"]


@pytest.mark.parametrize("function", hostile_functions())
def test_a_hostile_module_costs_its_call(expander: TemplateExpander, function: str) -> None:
    text = "{{#invoke:Hostile|" + function + "}}"
    assert call(expander, text) == Expansion(text, is_call=True, failed=True)
    assert call(expander, "{{#invoke:Good|data}}").text == "bxx"


@pytest.mark.parametrize("name", ["Broken", "Compiled", "No table", "Nowhere", "Good|nothing", "../Good"])
def test_a_broken_module_costs_its_call(expander: TemplateExpander, name: str) -> None:
    text = "{{#invoke:" + (name if "|" in name else f"{name}|main") + "}}"
    assert call(expander, text) == Expansion(text, is_call=True, failed=True)


def test_a_template_whose_module_fails_stays_a_call(expander: TemplateExpander) -> None:
    assert call(expander, "{{Failing|{{Hello}}}}") == Expansion("{{Failing|Hello, world!}}", is_call=True, failed=True)


@pytest.mark.parametrize("function", ["strings", "tables", "globals", "data", "raw", "html", "address", "failing"])
def test_no_call_changes_what_the_next_one_sees(expander: TemplateExpander, function: str) -> None:
    call(expander, "{{#invoke:Breaks out|" + function + "}}")
    looks = "{{#invoke:Breaks out|looks|" + function + "}}"
    assert call(expander, looks).text == "nil x  x yb<b></b>//a11"


@pytest.mark.builds
def test_a_pattern_that_never_ends_is_ended_by_seconds(expander: TemplateExpander) -> None:
    bomb = "return { f = function() return (('a'):rep(40)):find(('a-'):rep(40) .. 'b') end }"
    made = make_expander({**PAGES, "#Bomb": bomb}, modules=SMALL)
    text = "{{#invoke:Bomb|f}}"
    assert call(made, text) == Expansion(text, is_call=True, failed=True)
    assert call(made, "{{#invoke:Good|data}}", "Next").text == "bxx"
    assert made.limited == 1
    assert made.modules is not None
    made.modules.close()


@pytest.mark.builds
def test_seconds_are_waited_for_once_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []

    class Counted(lua_process._Process):
        def __init__(self, start: Mapping[str, Any]) -> None:
            started.append(start["memory"])
            super().__init__(start)

    monkeypatch.setattr(lua_process, "_Process", Counted)
    bomb = "return { f = function() return (('a'):rep(40)):find(('a-'):rep(40) .. 'b') end }"
    made = make_expander({**PAGES, "#Bomb": bomb}, modules=SMALL)
    calls = [f"{{{{#invoke:Bomb|f|{number}}}}}" for number in range(20)]
    for title in ("A", "B"):
        text = " ".join([*calls, "{{#invoke:Good|data}}", "{{Hello}}"])
        assert expand_page(made, title, text) == " ".join([*calls, "{{#invoke:Good|data}}", "Hello, world!"])
    assert len(started) == 2, "a process for each page"
    assert expand_page(made, "C", f"{{{{#invoke:Good|data}}}} {calls[0]}") == f"bxx {calls[0]}"
    assert len(started) == 3
    assert made.given_up == {"Modulis:Bomb"}, "by two pages, and Good, which they refuse, is not"
    made.begin_unit()
    assert expand_page(made, "D", f"{{{{#invoke:Good|data}}}} {calls[0]}") == f"bxx {calls[0]}"
    assert not made.given_up
    assert len(started) == 3
    assert made.modules is not None
    made.modules.close()


# ---- limits: whatever was called before, a page gives the same


BUSY = "return { f = function(frame) for _ = 1, tonumber(frame.args[1]) do end return 'done' end }"


def text_of_pages(pages: Mapping[str, str], titles: list[str]) -> dict[str, str]:
    made = make_expander({"#Busy": BUSY, **PAGES}, modules=SMALL)
    given = {title: expand_page(made, title, pages[title]) for title in titles}
    assert made.modules is not None
    made.modules.close()
    return given


def busy(*counts: int) -> str:
    return " ".join("{{#invoke:Busy|f|" + str(count) + "}}" for count in counts)


@pytest.mark.builds
def test_a_page_gives_the_same_in_any_order() -> None:
    near = 1_990_000  # instructions, just below the limit of a call, and above what a used process may take
    pages = {
        "a": busy(10),
        "b": busy(near),
        "c": busy(10, near + 100_000, 10),
        "d": busy(*range(near - 9, near)),
        "e": busy(near - 9, 10, 20, 30),
    }
    forward, back = (text_of_pages(pages, titles) for titles in ("abcde", "edcba"))
    assert forward == back
    assert forward["b"] == "done"
    assert forward["c"] == "done {{#invoke:Busy|f|2090000}} done"
    assert forward["d"].startswith("done done done {{#invoke")
    assert forward["e"] == "done done done done"


@pytest.mark.builds
def test_a_page_whose_time_is_over_leaves_nothing_behind() -> None:
    made = make_expander({"#Busy": BUSY, **PAGES}, modules=Limits())
    for _ in range(2):
        with pytest.raises(PageTimeError), time_limit(0.2):
            for number in range(10_000):
                expand_page(made, "Long", busy(1_000_000 + number))
        assert expand_page(made, "Short", f"{busy(7)} {{{{Hello}}}}") == "done Hello, world!"


@pytest.mark.builds
def test_a_module_that_runs_into_its_limit_twice_is_given_up_for_the_page() -> None:
    endless = [f"{{{{#invoke:Hostile|loop|{number}}}}}" for number in range(50)]
    pages = {title: " ".join([*endless, busy(7), "{{#invoke:Hostile|gigabyte}}", "{{Hello}}"]) for title in "abcd"}
    made = make_expander({"#Busy": BUSY, **PAGES}, modules=SMALL)
    assert made.modules is not None
    for title, text in pages.items():
        given = expand_page(made, title, text)
        assert given == " ".join([*endless, "done", "{{#invoke:Hostile|gigabyte}}", "Hello, world!"])
        assert 2 * SMALL.call_instructions <= made.modules.ticks * TICK < 3 * SMALL.call_instructions
    assert made.limited == len(pages)
    made.modules.close()
    forward, back = (text_of_pages(pages | {"e": busy(7)}, titles) for titles in ("abcde", "edcba"))
    assert forward == back


@pytest.mark.builds
def test_a_module_is_taken_again_on_the_next_page() -> None:
    over = 2_090_000
    pages = {"a": busy(over, over, 10), "b": busy(10), "c": busy(over, 10), "d": busy(over, 10, over, 10)}
    forward, back = (text_of_pages(pages, titles) for titles in ("abcd", "dcba"))
    assert forward == back
    assert forward["a"] == pages["a"], "given up"
    assert forward["b"] == "done"
    assert forward["c"] == f"{busy(over)} done"
    assert forward["d"] == f"{busy(over)} done {busy(over)} {busy(10)}"


@pytest.mark.builds
def test_a_module_that_runs_into_its_limit_on_many_pages_is_given_up_for_the_unit() -> None:
    over = 2_090_000
    made = make_expander({"#Busy": BUSY, **PAGES}, modules=SMALL)
    assert made.modules is not None
    # What was kept before must not go on giving text, nor what was refused stay refused in the next unit.
    for _ in range(2):
        assert expand_page(made, "first", busy(10)) == "done"
        for number in range(10):
            assert expand_page(made, f"{number}", busy(over + number, 20)) == f"{busy(over + number)} done"
        assert made.given_up == {"Modulis:Busy"}
        assert expand_page(made, "last", f"{busy(10, 30)} {{{{#invoke:Good|data}}}}") == f"{busy(10, 30)} bxx"
        assert made.modules.ticks < 10
        made.begin_unit()
    assert made.limited == 22
    made.modules.close()


@pytest.mark.parametrize(
    ("text", "pages"),
    [
        ("{{A}}", {"A": "#A" + " " * 40_000 + "x"}),
        ("{{A}}", {"A": "[[en:Template:" + " " * 2000}),
        ("{{#invoke:A|f}}", {"#A": "return require 'a" + ":" * 8000 + "'x"}),
        ("{{#invoke:A|f}}", {"#A": "return require 'a:b'" + " " * 20_000 + "x"}),
        ("{{#invoke:Good|digits}}", {}),
    ],
)
def test_no_page_takes_more_than_linear_time(text: str, pages: Mapping[str, str]) -> None:
    made = make_expander({**PAGES, **pages}, modules=SMALL)
    before = time.process_time()
    call(made, text)
    assert time.process_time() - before < 1
    assert made.modules is not None
    made.modules.close()


# ---- the extra


@pytest.mark.parametrize("package", ["lupa", "wikitextprocessor"])
def test_what_is_not_installed_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == package else find(name))
    with pytest.raises(UnusableInputError, match=r"pip install 'maskmill\[lua\]'"):
        libraries_folder()
