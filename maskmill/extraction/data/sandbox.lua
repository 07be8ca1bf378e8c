-- What stands between Scribunto's libraries and the host: the globals that modules may use, the limits of a call, and
-- what the libraries ask of MediaWiki. Runs once in a state of Lua 5.1; modules never see `host` nor anything of Python.
--
-- host: functions of Python, each of which returns (true, value) or (false, message). sources: the Lua text of
-- Scribunto's libraries by path. tick: instructions of Lua between two looks at the limit.
-- Returns the functions that Python calls: invoke and begin.
local host, sources, tick = ...

local debug_sethook, debug_getmetatable, debug_traceback = debug.sethook, debug.getmetatable, debug.traceback
local debug_setmetatable = debug.setmetatable
local load_text, set_environment = loadstring, setfenv
local pcall_any, xpcall_any, tostring_any, date_of, time_of = pcall, xpcall, tostring, os.date, os.time
local all_of = next
local OUT_OF_MEMORY = 'not enough memory'

-- Counts of the limits, see below. What Python does is not counted, so a call of it counts as many instructions.
local ticks, most_ticks, stopped = 0, 0, nil
local TICKS_OF_PYTHON = 0.05

-- Functions of Python as functions of Lua that raise their errors: what modules get hold of holds nothing of Python.
local function functions_of(group)
	local found = {}
	for name, call in pairs(group) do
		found[name] = function (...)
			ticks = ticks + TICKS_OF_PYTHON
			local ok, value = call(...)
			if not ok then
				error(value, 0)
			end
			return value
		end
	end
	return found
end

host = functions_of(host)

-- Limits: counted in instructions, so that they are the same on every machine. Once the limit is passed, no pcall holds
-- the error back.

local function stop(reason)
	stopped = reason
	error(reason, 0)
end

local function count_tick()
	ticks = ticks + 1
	if ticks > most_ticks then
		stop('instructions')
	end
end

local function start_counting()
	debug_sethook(count_tick, '', tick)
end

local function add_ticks(count)
	ticks = ticks + count
	if ticks > most_ticks then
		stop('instructions')
	end
end

local function or_stop(ok, first, ...)
	if not ok then
		if first == OUT_OF_MEMORY then
			stopped = stopped or 'memory'
		end
		if stopped then
			error(stopped, 0)
		end
	end
	return ok, first, ...
end

function pcall(f, ...)
	return or_stop(pcall_any(f, ...))
end

-- The handler runs when the error is over: within one of the limit nothing would be counted.
function xpcall(f, handler)
	local function handled(ok, ...)
		if ok then
			return ok, ...
		end
		return ok, handler(...)
	end
	return handled(or_stop(pcall_any(f)))
end

-- Addresses differ from run to run, so they do not show.
function tostring(...)
	local value = ...
	local kind = type(value)
	if kind == 'table' or kind == 'function' or kind == 'userdata' or kind == 'thread' then
		local metatable = debug_getmetatable(value)
		if not metatable or rawget(metatable, '__tostring') == nil then
			return kind
		end
	end
	return tostring_any(...)
end

-- Random numbers: MINSTD, the same on every machine; each call of the host starts it anew.
local seed
local function start_random(value)
	seed = math.floor(math.abs(tonumber(value) or 1)) % 2147483646 + 1
end
math.randomseed = start_random
function math.random(low, high)
	seed = seed * 16807 % 2147483647
	local share = (seed - 1) / 2147483646
	if low == nil then
		return share
	end
	if high == nil then
		low, high = 1, low
	end
	if low > high then
		error("bad argument to 'random' (interval is empty)", 2)
	end
	return low + math.floor(share * (high - low + 1))
end

-- What modules may use. Coroutines, `load` and the like are not there on Wikimedia's sites, either.

os = {
	clock = function () return 0 end,
	difftime = os.difftime,
	date = function (format, time)
		return date_of(format, time or host.now())
	end,
	time = function (fields)
		if fields == nil then
			return host.now()
		end
		return time_of(fields)
	end,
}
debug = { traceback = debug_traceback }
string.dump = nil
for _, name in ipairs { 'io', 'package', 'coroutine', 'load', 'loadfile', 'loadstring', 'dofile', 'module', 'require',
	'newproxy', 'collectgarbage', 'gcinfo', 'print', 'python' } do
	_G[name] = nil
end

-- Libraries of Scribunto, and modules of the wiki.

local chunks = {}

local function chunk_of(name)
	if chunks[name] == nil then
		local text = sources[name] or sources['ustring/' .. name] or sources['luabit/' .. name]
		if text == nil then
			text = host.module_text(name)
		end
		if text == nil then
			chunks[name] = false
		else
			if text:byte() == 27 then
				error(name .. ' is compiled code', 0)
			end
			local chunk, message = load_text(text, '=' .. name)
			if chunk == nil then
				error(message, 0)
			end
			chunks[name] = chunk
		end
	end
	return chunks[name] or nil
end

local function register(name, interface, options)
	mw_interface = interface
	local library = set_environment(chunk_of(name), _G)()
	if library.setupInterface then
		library.setupInterface(options)
	end
	mw_interface = nil
end

sources.strict = [[
	local metatable = getmetatable(_G) or {}
	function metatable.__index(_, name)
		if name ~= 'arg' then error('Tried to read nil global ' .. tostring(name), 2) end
	end
	function metatable.__newindex(t, name, value)
		if name ~= 'arg' then error('Tried to write global ' .. tostring(name), 2) end
		rawset(t, name, value)
	end
	setmetatable(_G, metatable)
]]

local frames  -- of the call that runs: by identity their title and arguments

local function frame_of(identity)
	return frames[identity] or error('invalid frame', 0)
end

local interface = {
	loadPackage = chunk_of,
	loadPHPLibrary = function () end,
	frameExists = function (identity) return frames[identity] ~= nil end,
	newChildFrame = function (parent, title, arguments)
		local identity = 'frame' .. #frames + 1
		frames[#frames + 1] = identity
		local values = {}
		for name, value in pairs(arguments) do
			values[tostring(name)] = value
		end
		local of_parent = frame_of(parent)
		frames[identity] = {
			title = title or of_parent.title, arguments = values, is_page = not title and of_parent.is_page,
		}
		return identity
	end,
	getFrameTitle = function (identity)
		local frame = frame_of(identity)
		if frame.is_page then
			host.use_page()
		end
		return frame.title
	end,
	getExpandedArgument = function (identity, name) return frame_of(identity).arguments[name] end,
	getAllExpandedArguments = function (identity)
		local found = {}
		for name, value in pairs(frame_of(identity).arguments) do
			local number = name:match('^[1-9]%d*$')
			found[number and tonumber(number) or name] = value
		end
		return found
	end,
	preprocess = function (identity, text)
		if not text:find('{{', 1, true) and not text:find('<', 1, true) then
			return text
		end
		return host.preprocess(text, frame_of(identity).arguments)
	end,
	expandTemplate = function (identity, title, arguments) return host.expand_template(title, arguments) end,
	callParserFunction = function (identity, name, arguments) return host.call_function(name, arguments) end,
	incrementExpensiveFunctionCount = function () end,
	isSubsting = function () return false end,
	setTTL = function () end,
	addWarning = function () end,
}

chunk_of('mwInit')()
register('mw', interface, { allowEnvFuncs = false })
local of_libraries = host.options()
for _, name in ipairs { 'site', 'uri', 'ustring', 'language', 'message', 'title', 'text', 'html', 'hash' } do
	local options = of_libraries[name] or {}
	if name == 'title' then
		-- The page is noted to be asked for whenever somebody looks at its title.
		setmetatable(options, { __index = function (_, key)
			return key == 'thisTitle' and host.this_title() or nil
		end })
	end
	register('mw.' .. name, functions_of(host.functions(name)), options)
end

-- Wikidata is not in a dump: what is asked of it is not there.
local nothing, empty = function () return nil end, function () return {} end
mw.wikibase = setmetatable(
	{
		entityExists = function () return false end,
		isValidEntityId = function (text) return type(text) == 'string' and text:find('^[QPL]%d+$') ~= nil end,
		getAllStatements = empty, getBestStatements = empty, orderProperties = function (ids) return ids end,
		renderSnak = function () return '' end, renderSnaks = function () return '' end,
		formatValue = function () return '' end, formatValues = function () return '' end,
	},
	{ __index = function () return nothing end }
)
mw.ext = {}

function mw.loadJsonData(name)
	if type(name) ~= 'string' then
		error('the name of a page must be a text', 2)
	end
	return mw.text.jsonDecode(host.module_text(name) or error('there is no page ' .. name, 2))
end

-- Data that one call has loaded serves the next ones, which count its instructions, and depend on the date as it does,
-- all the same. What depends on the page or on templates must not serve the next page.
local load_data, costs, dated, tainted = mw.loadData, {}, {}, false
function mw.loadData(name)
	if costs[name] then
		add_ticks(costs[name])
		if dated[name] then
			host.now()
		end
		return load_data(name)
	end
	local before, asked = ticks, host.asked()
	local ok, data = pcall(load_data, name)
	local since = host.asked()
	tainted = tainted or since.page > asked.page or since.templates > asked.templates
	if not ok then
		error(data, 0)
	end
	costs[name], dated[name] = ticks - before, since.date > asked.date
	return data
end

-- Metatables that Scribunto's libraries share between modules: each call finds them as they were made.
local as_made = {}
local function keep_as_made(shared)
	as_made[shared] = {}
	for key, value in all_of, shared do
		as_made[shared][key] = value
	end
end
keep_as_made(getmetatable(mw.html.create('')))
keep_as_made(getmetatable(mw.html.create('')).__index)
keep_as_made(getmetatable(mw.uri.new('')))
keep_as_made(getmetatable(mw.message.rawParam('')))

local function make_anew()
	for shared, made in all_of, as_made do
		debug_setmetatable(shared, nil)
		for key in all_of, shared do
			shared[key] = nil
		end
		for key, value in all_of, made do
			shared[key] = value
		end
	end
end

local function run(module, name, is_first)
	local chunk = chunk_of(module)
	if chunk == nil then
		error('there is no module ' .. module, 0)
	end
	local ok, f = mw.executeModule(chunk, name)
	if not ok then
		error('the module gives no table', 0)
	end
	if type(f) ~= 'function' and not (type(f) == 'table' and debug_getmetatable(f) and debug_getmetatable(f).__call) then
		error('the module has no function ' .. name, 0)
	end
	if type(f) == 'table' then
		local callable = f
		f = function (...) return callable(...) end
	end
	if is_first then
		start_random(1)  -- as executeFunction does, unless a call before failed
	end
	return mw.executeFunction(f)
end

-- Runs a function of a module. Gives ('text', what it returned), or ('failed', why), or ('limit', which one).
local function invoke(module, name, of_call)
	local before = frames
	frames = of_call
	local ok, text = xpcall_any(
		function () return run(module, name, before == nil) end,
		function (message) return type(message) == 'string' and message or 'an error that is not a text' end
	)
	frames = before
	if not ok and text == OUT_OF_MEMORY then
		stopped = stopped or 'memory'
	end
	if stopped then
		return 'limit', stopped
	end
	return ok and 'text' or 'failed', text
end

local function begin(limit)
	make_anew()
	mw.clearLogBuffer()
	start_random(1)
	ticks, most_ticks, stopped = 0, limit, nil
	start_counting()
end

return invoke, begin, function () return ticks, tainted end
