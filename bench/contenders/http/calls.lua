-- Calls for wrk, each with its own id. All ids have nine digits, so that nothing else in the request changes.
--
--     wrk … -s calls.lua URL -- BODY EXPECTED FIRST_ID PAUSE [SESSION …]
--
-- BODY has 000000000 in the place of the id. A correct response contains each line of EXPECTED. Each connection waits for
-- PAUSE milliseconds on average before each call; if it is 0, for none. The sessions take turns. The counts, and latencies
-- in microseconds, are printed as JSON.

local id, expected, requests, turn
local threads = {}

local function split(whole)
    local parts, from = {}, 1
    while true do
        local at = whole:find("000000000", from, true)
        parts[#parts + 1] = whole:sub(from, (at or 0) - 1)
        if not at then return parts end
        from = at + 9
    end
end

function setup(thread)
    threads[#threads + 1] = thread
end

function init(args)
    io.stderr:write("started\n")
    expected, id, requests, turn = {}, tonumber(args[3]), {}, 0
    for line in args[2]:gmatch("[^\n]+") do expected[#expected + 1] = line end
    wrong = 0 -- a global, which `done` reads from outside the thread
    local pause = tonumber(args[4])
    if pause > 0 then
        math.randomseed(id)
        delay = function() return math.floor(2 * pause * math.random() + 0.5) end -- wrk asks for it if it is there
    end
    local sessions = { unpack(args, 5) }
    for number = 1, math.max(1, #sessions) do
        wrk.headers["Mcp-Session-Id"] = sessions[number]
        requests[number] = split(wrk.format("POST", nil, nil, args[1]))
    end
end

function request()
    id = id + 1
    turn = turn % #requests + 1
    return table.concat(requests[turn], string.format("%09d", id))
end

function response(status, headers, body)
    for _, line in ipairs(expected) do
        if not body:find(line, 1, true) then
            wrong = wrong + 1
            return
        end
    end
end

function done(summary, latency)
    local errors = summary.errors
    local broken = errors.connect + errors.read + errors.write + errors.timeout
    local wrong = 0
    for _, thread in ipairs(threads) do wrong = wrong + thread:get("wrong") end
    local counts = '\n{"requests": %d, "seconds": %f, "not_2xx": %d, "wrong": %d, "broken": %d'
    io.write(counts:format(summary.requests, summary.duration / 1e6, errors.status, wrong, broken))
    for _, share in ipairs({ 50, 99, 99.9 }) do
        io.write((', "p%s": %f'):format(share, latency:percentile(share)))
    end
    io.write("}\n")
end
