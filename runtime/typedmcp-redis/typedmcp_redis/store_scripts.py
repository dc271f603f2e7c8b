"""The Lua scripts of `RedisStore`, each of which Redis runs atomically.

All keys begin with the store's prefix; `<s>` is a session, `<id>` a stream: the session, a slash, the stream's name.

| key | type | content |
|---|---|---|
| `sessions` | sorted set | sessions, by the millisecond in which they expire: a session exists until then |
| `session:<s>` | hash | the session's fields |
| `used` | sorted set | names that were used once, by the millisecond in which they expire |
| `subscriptions:<s>` | set | the URIs that the session is subscribed to |
| `sizes` | hash | for each session: the bytes that it counts, a space, and the client that they count for |
| `held` | hash | for each client: the bytes of all its sessions; in the empty field: those of all clients |
| `stream_sizes` | hash | for each stream: the bytes that it counts, a space, and the client that they count for |
| `kept` | hash | for each client: the bytes of all its streams; in the empty field: those of all clients |
| `ended` | sorted set | streams that have ended, by the millisecond in which they are dropped |
| `streams:<s>` | sorted set | its streams, by the millisecond in which they are dropped; open ones at infinity |
| `stream:<id>` | hash | `writer`, `final_event`, `first` and `last` number kept, `size` in bytes; `ended` once it has |
| `events:<id>` | stream | the events, as `<number>-0` |
| `waiting:<id>` | set | workers with followers that wait for the next event |
| `workers` | sorted set | workers, by the millisecond in which their lease ends |
| `open:<worker>` | set | open streams that the worker writes |
| `inbox:<worker>` | stream | messages to the worker (`d`), and streams whose followers have to be woken (`wake`) |
| `done:<worker>` | hash | number and answer of the last command in each slot of the worker |
| `bus` | stream | published messages (`d`), each with the number of the one before (`before`) |
| `clock` | hash | the last number of all messages (`n`), and of the published ones (`bus`) |
| `pulse`, `grace` | string | see `is_dead` |
"""

from __future__ import annotations

import hashlib
from typing import Final

from typedmcp_redis.link import Script

__all__ = [
    "APPEND_EVENTS", "CREATE_SESSION", "CREATE_STREAM", "DELETE_SESSION", "END_STREAMS", "LOAD_SESSION",
    "LOAD_SUBSCRIPTIONS", "MESSAGES_AFTER", "NOT_FOUND", "OPEN_WORKER", "PUBLISH", "READ_EVENTS", "RENEW_LEASE", "SEND",
    "SUBSCRIBE", "TOO_MANY", "TOO_MANY_BYTES", "UNSUBSCRIBE", "UPDATE_SESSION", "USE_ONCE",
]  # fmt: skip

NOT_FOUND: Final = -1
"""The answer of a script for a session or stream that does not exist."""
TOO_MANY: Final = -2
"""The answer of `CREATE_SESSION`, `SUBSCRIBE` and `USE_ONCE` at the limit on their number."""
TOO_MANY_BYTES: Final = -3
"""The answer of `CREATE_SESSION` and `SUBSCRIBE` at the limit on bytes."""


_COMMON: Final = """
-- ARGV[8] is the slot of the command, which no other uses while it runs, ARGV[9] the command's number. The arguments of
-- the script itself begin with ARGV[10].
local P, me, ttl, lease, keep, max_events, max_bytes =
  ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local call = redis.call
local clock = call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local function text(number) return string.format('%.0f', number) end

-- Return the next number for a message. It starts at the time, in microseconds, so that numbers grow even if Redis has
-- lost its data.
local function next_number()
  local number = math.max((tonumber(call('HGET', P..'clock', 'n')) or 0) + 1, clock[1] * 1000000 + clock[2])
  call('HSET', P..'clock', 'n', text(number))
  return number
end

-- Add an entry to a worker's inbox. A worker that is not registered has none.
local function send(worker, field, value)
  if call('ZSCORE', P..'workers', worker) then
    call('XADD', P..'inbox:'..worker, text(next_number())..'-0', field, value)
  end
end

-- Wake the followers of a stream. Each worker is woken once, and then waits again.
local function wake(id)
  for _, worker in ipairs(call('SMEMBERS', P..'waiting:'..id)) do send(worker, 'wake', id) end
  call('DEL', P..'waiting:'..id)
end

local function is_alive(session)
  local expires = call('ZSCORE', P..'sessions', session)
  return expires and tonumber(expires) > now
end

-- `sessions` decides when a session ends. Its keys live a little longer, so that a sweep finds them; without a worker
-- that sweeps, they expire by themselves.
local idle = ttl + 10 * lease

-- Count bytes for a client and in total; negative ones are free again.
local function hold(key, client, bytes)
  if call('HINCRBY', P..key, '', bytes) <= 0 then call('HDEL', P..key, '') end
  if client ~= '' and call('HINCRBY', P..key, client, bytes) <= 0 then call('HDEL', P..key, client) end
end

-- Count bytes of a session, whose new size is `size`.
local function count(session, client, bytes, size)
  hold('held', client, bytes)
  call('HSET', P..'sizes', session, text(size)..' '..client)
end

-- Return the bytes that a session counts, and their client.
local function counted(session)
  local size, client = string.match(call('HGET', P..'sizes', session) or '0 ', '^(%d+) (.*)$')
  return tonumber(size), client
end

-- Count bytes of the events of a stream, for the client of its session.
local function count_events(id, bytes)
  local size, client = string.match(call('HGET', P..'stream_sizes', id) or '', '^(%d+) (.*)$')
  if not size then
    if bytes <= 0 then return end
    size, client = 0, select(2, counted(string.match(id, '^[^/]*')))
  end
  hold('kept', client, bytes)
  call('HSET', P..'stream_sizes', id, text(size + bytes)..' '..client)
end

-- Return whether all clients hold `total` bytes, or one client its share.
local function is_full(key, client, total, share)
  local held = call('HMGET', P..key, '', client)
  return tonumber(held[1] or 0) >= total or (client ~= '' and tonumber(held[2] or 0) >= share)
end

local function expire(id, time)
  call('PEXPIRE', P..'stream:'..id, time)
  call('PEXPIRE', P..'events:'..id, time)
  call('PEXPIRE', P..'waiting:'..id, time)
end

-- Restart the idle time of a session. Return false if it does not exist. Its keys are prolonged once in a lease, since
-- they may be many.
local function touch(session)
  if not is_alive(session) then return false end
  call('ZADD', P..'sessions', now + ttl, session)
  if call('PTTL', P..'session:'..session) > idle - lease then return true end
  call('PEXPIRE', P..'session:'..session, idle)
  call('PEXPIRE', P..'subscriptions:'..session, idle)
  call('PEXPIRE', P..'streams:'..session, idle)
  for _, name in ipairs(call('ZRANGEBYSCORE', P..'streams:'..session, 'inf', 'inf')) do
    expire(session..'/'..name, idle)
  end
  return true
end

-- Drop the oldest events beyond the limits, but never the newest.
local function trim(id, first, last, size)
  while first < last and (last - first + 1 > max_events or size > max_bytes) do
    local oldest = call('XRANGE', P..'events:'..id, '-', '+', 'COUNT', 1)[1]
    size = size - #oldest[2][2]
    call('XDEL', P..'events:'..id, oldest[1])
    first = first + 1
  end
  return first, size
end

-- Append events[from], events[from + 1], … to an open stream. Return the number of the last one.
local function append(id, events, from)
  local found = call('HMGET', P..'stream:'..id, 'first', 'last', 'size')
  local first, last, size = tonumber(found[1]), tonumber(found[2]), tonumber(found[3])
  for at = from, #events do
    last = last + 1
    size = size + #events[at]
    call('XADD', P..'events:'..id, last..'-0', 'd', events[at])
  end
  if tonumber(found[2]) == 0 then call('PEXPIRE', P..'events:'..id, idle) end
  first, size = trim(id, first, last, size)
  count_events(id, size - found[3])
  call('HSET', P..'stream:'..id, 'first', first, 'last', last, 'size', size)
  return last
end

local function finish(id)
  local session, name = string.match(id, '^([^/]*)/(.*)$')
  local writer = call('HGET', P..'stream:'..id, 'writer')
  call('HSET', P..'stream:'..id, 'ended', 1, 'final_event', '')
  call('SREM', P..'open:'..writer, id)
  call('ZADD', P..'streams:'..session, now + keep, name)
  call('ZADD', P..'ended', now + keep, id)
  expire(id, keep)
end

local function drop_stream(id)
  local writer = call('HGET', P..'stream:'..id, 'writer')
  if writer then call('SREM', P..'open:'..writer, id) end
  call('DEL', P..'stream:'..id, P..'events:'..id)
  local size, client = string.match(call('HGET', P..'stream_sizes', id) or '', '^(%d+) (.*)$')
  if size then
    hold('kept', client, -size)
    call('HDEL', P..'stream_sizes', id)
  end
  call('ZREM', P..'ended', id)
  wake(id)
end

-- Append the final event of a stream that its writer cannot end.
local function append_final_event(id)
  local found = call('HMGET', P..'stream:'..id, 'final_event', 'ended')
  if not found[1] then drop_stream(id) end  -- it has expired
  if not found[1] or found[2] then return end
  append(id, {found[1]}, 1)
  finish(id)
  wake(id)
end

-- Return whether a worker is dead, since its lease has run out. If no worker has renewed its lease for a whole lease,
-- it was Redis that was away: then no worker counts as dead for one more lease, so that each can come back.
local function is_dead(worker)
  local expires = call('ZSCORE', P..'workers', worker)
  if not expires then return true end
  return tonumber(expires) < now and call('EXISTS', P..'pulse') == 1 and call('EXISTS', P..'grace') == 0
end

-- Renew the lease of a worker.
local function renew(worker)
  call('ZADD', P..'workers', now + lease, worker)
end

local function drop(session)
  for _, name in ipairs(call('ZRANGE', P..'streams:'..session, 0, -1)) do drop_stream(session..'/'..name) end
  call('DEL', P..'session:'..session, P..'subscriptions:'..session, P..'streams:'..session)
  call('ZREM', P..'sessions', session)
  local size, client = counted(session)
  if size > 0 then
    count(session, client, -size, 0)
    call('HDEL', P..'sizes', session)
  end
end

local function sweep()
  -- Both are limited, since nothing else runs in the meantime.
  local over = call('ZRANGEBYSCORE', P..'sessions', '-inf', now, 'LIMIT', 0, 300)
  for _, session in ipairs(over) do drop(session) end
  local due = call('ZRANGEBYSCORE', P..'ended', '-inf', now, 'LIMIT', 0, 300)
  for _, id in ipairs(due) do drop_stream(id) end
end
"""

_ONCE: Final = """
-- Run a command once, even if it is sent again because its connection broke. `act` returns a number, which is kept.
local function once(act)
  local number, answer = string.match(call('HGET', P..'done:'..me, ARGV[8]) or '', '^(%d+) (.*)$')
  if number == ARGV[9] then return tonumber(answer) end
  answer = act()
  call('HSET', P..'done:'..me, ARGV[8], ARGV[9]..' '..text(answer))
  return answer
end
"""


def _script(body: str) -> Script:
    text = _COMMON + body
    return Script(hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest(), text)


def _once(body: str) -> Script:
    return _script(f"{_ONCE}return once(function()\n{body}\nend)")


# Workers

OPEN_WORKER = _script("""
-- Register a worker. Return the numbers of the last message and of the last published one: it reads from there on.
renew(me)
local found = call('HMGET', P..'clock', 'n', 'bus')
return {found[1] or '0', found[2] or '0'}
""")

RENEW_LEASE = _script("""
-- Renew the lease of this worker, sweep, and drop what it has read: ARGV[10] is the last id read in its inbox.
-- Return whether the worker was registered, and the names of dead workers.
local was_known = call('ZSCORE', P..'workers', me) and 1 or 0
if call('EXISTS', P..'pulse') == 0 then call('SET', P..'grace', 1, 'PX', lease) end
call('SET', P..'pulse', 1, 'PX', lease)
renew(me)
call('XTRIM', P..'inbox:'..me, 'MINID', ARGV[10])
sweep()
local answer = {was_known}
for _, worker in ipairs(call('ZRANGEBYSCORE', P..'workers', '-inf', now)) do
  if is_dead(worker) then table.insert(answer, worker) end
end
return answer
""")

END_STREAMS = _script("""
-- Append the final events of some streams of a worker, ARGV[10], that is dead or (ARGV[11] is 1) closing. Return how
-- many open streams are left.
local worker = ARGV[10]
if ARGV[11] == '1' then call('ZREM', P..'workers', worker) end
if not is_dead(worker) then return 0 end
for _, id in ipairs(call('SPOP', P..'open:'..worker, 100)) do append_final_event(id) end
local left = call('SCARD', P..'open:'..worker)
if left == 0 then
  call('ZREM', P..'workers', worker)
  call('DEL', P..'inbox:'..worker)
  call('PEXPIRE', P..'done:'..worker, 60000)
end
return left
""")

# Sessions

CREATE_SESSION = _once("""
-- ARGV: session, most sessions, most bytes of all clients and of one, milliseconds until the first use, client, bytes,
-- name, value, …
local session, client, size = ARGV[10], ARGV[15], tonumber(ARGV[16])
local function refusal()
  if call('ZCARD', P..'sessions') >= tonumber(ARGV[11]) then return -2 end
  return is_full('held', client, tonumber(ARGV[12]), tonumber(ARGV[13])) and -3
end
drop(session)
if refusal() then sweep() end
if refusal() then return refusal() end
for at = 17, #ARGV, 2 do call('HSET', P..'session:'..session, ARGV[at], ARGV[at + 1]) end
count(session, client, size, size)
call('ZADD', P..'sessions', now + tonumber(ARGV[14]), session)
call('PEXPIRE', P..'session:'..session, idle)
return 0
""")

LOAD_SESSION = _script("""
if not touch(ARGV[10]) then return false end
return call('HGETALL', P..'session:'..ARGV[10])
""")

UPDATE_SESSION = _script("""
-- ARGV: session, number of names to delete, these names, then name, value, …
local session, deleted = ARGV[10], tonumber(ARGV[11])
if not is_alive(session) then return 0 end
for at = 12, 11 + deleted do call('HDEL', P..'session:'..session, ARGV[at]) end
for at = 12 + deleted, #ARGV, 2 do call('HSET', P..'session:'..session, ARGV[at], ARGV[at + 1]) end
touch(session)
return 1
""")

DELETE_SESSION = _once("""
local was_alive = is_alive(ARGV[10])
drop(ARGV[10])
return was_alive and 1 or 0
""")

# Names

USE_ONCE = _once("""
-- ARGV: name, milliseconds, limit. Return 0 if the name was used already.
call('ZREMRANGEBYSCORE', P..'used', '-inf', now)
if call('ZSCORE', P..'used', ARGV[10]) then return 0 end
if call('ZCARD', P..'used') >= tonumber(ARGV[12]) then return -2 end
call('ZADD', P..'used', now + tonumber(ARGV[11]), ARGV[10])
call('PEXPIRE', P..'used', math.max(call('PTTL', P..'used'), tonumber(ARGV[11])))
return 1
""")

# Subscriptions

LOAD_SUBSCRIPTIONS = _script("""
if not touch(ARGV[10]) then return {} end
return call('SMEMBERS', P..'subscriptions:'..ARGV[10])
""")

SUBSCRIBE = _once("""
-- ARGV: session, URI, its bytes, most URIs, most bytes of all clients and of one
local session, uri, bytes = ARGV[10], ARGV[11], tonumber(ARGV[12])
if not touch(session) then return 0 end
local key = P..'subscriptions:'..session
if call('SISMEMBER', key, uri) == 1 then return 1 end
if call('SCARD', key) >= tonumber(ARGV[13]) then return -2 end
local size, client = counted(session)
if is_full('held', client, tonumber(ARGV[14]), tonumber(ARGV[15])) then return -3 end
call('SADD', key, uri)
call('PEXPIRE', key, idle)
count(session, client, bytes, size + bytes)
return 1
""")

UNSUBSCRIBE = _once("""
-- ARGV: session, URI, its bytes
if not touch(ARGV[10]) then return 0 end
if call('SREM', P..'subscriptions:'..ARGV[10], ARGV[11]) == 1 then
  local size, client = counted(ARGV[10])
  count(ARGV[10], client, -ARGV[12], size - ARGV[12])
end
return 1
""")

# Streams

CREATE_STREAM = _once("""
-- ARGV: session, stream, final event, bytes that the stream counts
local session, name = ARGV[10], ARGV[11]
if not is_alive(session) then return -1 end
renew(me)
local id = session..'/'..name
drop_stream(id)
call('HSET', P..'stream:'..id, 'writer', me, 'final_event', ARGV[12], 'first', 1, 'last', 0, 'size', 0)
call('SADD', P..'open:'..me, id)
count_events(id, tonumber(ARGV[13]))
call('ZREMRANGEBYSCORE', P..'streams:'..session, '-inf', now)
call('ZADD', P..'streams:'..session, 'inf', name)
call('PEXPIRE', P..'streams:'..session, idle)
expire(id, idle)
touch(session)
return 0
""")

APPEND_EVENTS = _once("""
-- ARGV: session, stream, 1 if the stream ends with these events, most bytes of all clients and of one, event, …
local session, total, share = ARGV[10], tonumber(ARGV[13]), tonumber(ARGV[14])
local id = session..'/'..ARGV[11]
if not touch(session) then return -1 end
local found = call('HMGET', P..'stream:'..id, 'writer', 'ended')
if not found[1] or found[2] then return -1 end
local last = append(id, ARGV, 15)
local _, client = counted(session)
-- Make room: drop the session's streams that have ended if its client holds its share, the oldest of all if all hold
-- the total, and then older events of this stream.
while is_full('kept', client, math.huge, share) do
  local oldest = call('ZRANGEBYSCORE', P..'streams:'..session, '-inf', '(inf', 'LIMIT', 0, 1)[1]
  if not oldest then break end
  call('ZREM', P..'streams:'..session, oldest)
  drop_stream(session..'/'..oldest)
end
while is_full('kept', '', total, share) do
  local oldest = call('ZRANGE', P..'ended', 0, 0)[1]
  if not oldest then break end
  drop_stream(oldest)
end
if is_full('kept', client, total, share) then
  max_events = 1
  append(id, {}, 1)
end
if ARGV[12] == '1' then finish(id) end
if ARGV[12] == '1' or #ARGV > 14 then wake(id) end
return last
""")

READ_EVENTS = _script("""
-- ARGV: session, stream, number. Return whether the stream has ended, and the events after the number. If the stream is
-- open, this worker is woken by the next event.
local id, after = ARGV[10]..'/'..ARGV[11], tonumber(ARGV[12])
local writer = is_alive(ARGV[10]) and call('HGET', P..'stream:'..id, 'writer')
if not writer then return {-1} end
if is_dead(writer) then append_final_event(id) end
local found = call('HMGET', P..'stream:'..id, 'first', 'last', 'ended')
if after < found[1] - 1 or after > tonumber(found[2]) then return {-1} end
if not found[3] then
  call('SADD', P..'waiting:'..id, me)
  call('PEXPIRE', P..'waiting:'..id, idle)
end
local answer = {found[3] and 1 or 0}
for _, event in ipairs(call('XRANGE', P..'events:'..id, text(after + 1)..'-0', '+')) do
  table.insert(answer, event[2][2])
end
return answer
""")

# Between workers

SEND = _once("""
send(ARGV[10], 'd', ARGV[11])
return 0
""")

PUBLISH = _once("""
-- ARGV: number of messages to keep, message
local before = call('HGET', P..'clock', 'bus') or '0'
local number = next_number()
call('HSET', P..'clock', 'bus', text(number))
call('XADD', P..'bus', 'MAXLEN', ARGV[10], text(number)..'-0', 'd', ARGV[11], 'before', before)
return number
""")

MESSAGES_AFTER = _script("""
-- Return the messages on the bus after number ARGV[10]: number, message, …; false if some were dropped or lost.
local after, last = tonumber(ARGV[10]), tonumber(call('HGET', P..'clock', 'bus') or 0)
if after > last then return false end
local found = call('XRANGE', P..'bus', text(after + 1)..'-0', '+')
if #found == 0 then return after == last and {} end
-- Only the first message ever published has no number before it. After a known number, it means that data was lost.
local before = tonumber(found[1][2][4])
if before > after or (before == 0 and after > 0) then return false end
local answer = {}
for _, message in ipairs(found) do
  table.insert(answer, string.match(message[1], '^%d+'))
  table.insert(answer, message[2][2])
end
return answer
""")
