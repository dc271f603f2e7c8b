-- Calls for wrk, each with an id of its own: of as many digits always, so that only these change in the request.
--
--     wrk … -s http_calls.lua URL -- BODY FIRST_ID [SESSION …]
--
-- BODY has 000000000 in the place of the id. The sessions take turns. What came of it is printed as JSON.

local id, requests, turn

function init(args)
    id, requests, turn = tonumber(args[2]), {}, 0
    local sessions = { unpack(args, 3) }
    for number = 1, math.max(1, #sessions) do
        wrk.headers["Mcp-Session-Id"] = sessions[number]
        local whole = wrk.format("POST", nil, nil, args[1])
        local at = assert(whole:find("000000000", 1, true))
        requests[number] = { whole:sub(1, at - 1), whole:sub(at + 9) }
    end
end

function request()
    id = id + 1
    turn = turn % #requests + 1
    return requests[turn][1] .. string.format("%09d", id) .. requests[turn][2]
end

function done(summary, latency)
    local errors = summary.errors
    local format = '\n{"requests": %d, "seconds": %f, "median_ms": %f, "p99_ms": %f, "not_2xx": %d, "broken": %d}\n'
    local broken = errors.connect + errors.read + errors.write + errors.timeout
    local median, p99 = latency:percentile(50) / 1e3, latency:percentile(99) / 1e3
    io.write(format:format(summary.requests, summary.duration / 1e6, median, p99, errors.status, broken))
end
