-- Calls for wrk, each with an id of its own: of as many digits always, so that only these change in the request.
--
--     wrk … -s calls.lua URL -- BODY FIRST_ID [SESSION …]
--
-- BODY has 000000000 wherever the id goes. The sessions take turns. What came of it is printed as JSON.

local id, requests, turn

local function split(whole)
    local parts, from = {}, 1
    while true do
        local at = whole:find("000000000", from, true)
        parts[#parts + 1] = whole:sub(from, (at or 0) - 1)
        if not at then return parts end
        from = at + 9
    end
end

function init(args)
    io.stderr:write("begun\n")
    id, requests, turn = tonumber(args[2]), {}, 0
    local sessions = { unpack(args, 3) }
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

function done(summary, latency)
    local errors = summary.errors
    local broken = errors.connect + errors.read + errors.write + errors.timeout
    local format = '\n{"requests": %d, "bytes": %d, "seconds": %f, "not_2xx": %d, "broken": %d}\n'
    io.write(format:format(summary.requests, summary.bytes, summary.duration / 1e6, errors.status, broken))
end
