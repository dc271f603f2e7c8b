-- Calls for wrk, each with an id of its own: of as many digits always, so that only these change in the request.
--
--     wrk … -s calls.lua URL -- BODY EXPECTED FIRST_ID [SESSION …]
--
-- BODY has 000000000 wherever the id goes, and every right answer has EXPECTED in its body. The sessions take turns.
-- What came of it is printed as JSON.

local expected, requests, turn, first
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
    io.stderr:write("begun\n")
    expected, first, requests, turn = args[2], tonumber(args[3]), {}, 0
    sent, wrong = 0, 0 -- globals, which `done` reads from outside the thread
    local sessions = { unpack(args, 4) }
    for number = 1, math.max(1, #sessions) do
        wrk.headers["Mcp-Session-Id"] = sessions[number]
        requests[number] = split(wrk.format("POST", nil, nil, args[1]))
    end
end

function request()
    sent = sent + 1
    turn = turn % #requests + 1
    return table.concat(requests[turn], string.format("%09d", first + sent))
end

function response(status, headers, body)
    if not body:find(expected, 1, true) then wrong = wrong + 1 end
end

function done(summary, latency)
    local errors = summary.errors
    local broken = errors.connect + errors.read + errors.write + errors.timeout
    local sent, wrong = 0, 0
    for _, thread in ipairs(threads) do
        sent, wrong = sent + thread:get("sent"), wrong + thread:get("wrong")
    end
    local format = '\n{"sent": %d, "requests": %d, "seconds": %f, "not_2xx": %d, "wrong": %d, "broken": %d}\n'
    io.write(format:format(sent, summary.requests, summary.duration / 1e6, errors.status, wrong, broken))
end
