"""What `RedisStore` has Redis do in one step, in Lua.

All keys begin with the store's prefix; `<s>` is a session, `<id>` a stream: the session, a slash, the stream's name.

| key | type | what it holds |
|---|---|---|
| `sessions` | sorted set | sessions, by the millisecond in which they expire: who stands here later than now is alive |
| `session:<s>` | hash | the session's fields |
| `streams:<s>` | sorted set | its streams, by the millisecond in which they are dropped; open ones at infinity |
| `stream:<id>` | hash | writer, will, first and last number kept, size; `ended` once it has |
| `events:<id>` | stream | the events, as `<number>-0` |
| `waiting:<id>` | set | workers that have to be told of the next event |
| `workers` | sorted set | workers, by the millisecond in which their lease ends |
| `open:<worker>` | set | the streams that it writes |
| `inbox:<worker>` | stream | what it is told, and (`wake`) the streams that its followers should look at |
| `done:<worker>` | hash | its last commands and what they answered, one for each that it can have under way |
| `bus` | stream | what was published, each with the number before it |
| `clock` | hash | the last number given (`n`), and the last one on the bus (`bus`) |
| `pulse`, `grace` | string | see `is_dead` |
"""

from __future__ import annotations

import hashlib
from typing import Final, NamedTuple

__all__ = [
    "APPEND", "BEAT", "BEGIN", "BURY", "CHANGE", "CREATE", "DELETE", "GONE", "LOAD", "OPEN", "PUBLISH", "PUBLISHED",
    "READ", "TELL", "TOO_MANY", "Script",
]  # fmt: skip

GONE: Final = -1
TOO_MANY: Final = -2


class Script(NamedTuple):
    """A script as Redis knows it."""

    digest: str
    text: str


_COMMON: Final = """
-- ARGV[8] is a place that one command of a worker at a time has, ARGV[9] the command's number; what is the script's own
-- begins with ARGV[10].
local P, me, ttl, lease, keep, max_events, max_bytes =
  ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local call = redis.call
local clock = call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local function text(number) return string.format('%.0f', number) end

-- The next number of all that is told or published. It begins with the time, in microseconds, so that it grows even
-- where Redis has lost what it had.
local function tick()
  local number = math.max((tonumber(call('HGET', P..'clock', 'n')) or 0) + 1, clock[1] * 1000000 + clock[2])
  call('HSET', P..'clock', 'n', text(number))
  return number
end

-- To a worker's inbox. A worker that was buried has none.
local function send(worker, field, value)
  if call('ZSCORE', P..'workers', worker) then
    call('XADD', P..'inbox:'..worker, text(tick())..'-0', field, value)
  end
end

-- Whoever waits is told once, and comes back.
local function wake(id)
  for _, worker in ipairs(call('SMEMBERS', P..'waiting:'..id)) do send(worker, 'wake', id) end
  call('DEL', P..'waiting:'..id)
end

local function is_alive(session)
  local expires = call('ZSCORE', P..'sessions', session)
  return expires and tonumber(expires) > now
end

-- Whether a session is over stands in `sessions`. Its keys stay a little longer, so that whoever sweeps finds them;
-- where no worker is left to sweep, they go nevertheless.
local idle = ttl + 10 * lease

local function expire(id, time)
  call('PEXPIRE', P..'stream:'..id, time)
  call('PEXPIRE', P..'events:'..id, time)
  call('PEXPIRE', P..'waiting:'..id, time)
end

-- The idle time of a session begins anew. False for one that is over.
local function touch(session)
  if not is_alive(session) then return false end
  call('ZADD', P..'sessions', now + ttl, session)
  call('PEXPIRE', P..'session:'..session, idle)
  call('PEXPIRE', P..'streams:'..session, idle)
  for _, name in ipairs(call('ZRANGEBYSCORE', P..'streams:'..session, 'inf', 'inf')) do
    expire(session..'/'..name, idle)
  end
  return true
end

-- Drop the oldest events that are too many, but never the newest.
local function trim(id, first, last, size)
  while first < last and (last - first + 1 > max_events or size > max_bytes) do
    local oldest = call('XRANGE', P..'events:'..id, '-', '+', 'COUNT', 1)[1]
    size = size - #oldest[2][2]
    call('XDEL', P..'events:'..id, oldest[1])
    first = first + 1
  end
  return first, size
end

-- Add ARGV[from] and those after it, or one event, to a stream that is open. The number of the last.
local function add(id, events, from)
  local found = call('HMGET', P..'stream:'..id, 'first', 'last', 'size')
  local first, last, size = tonumber(found[1]), tonumber(found[2]), tonumber(found[3])
  for at = from, #events do
    last = last + 1
    size = size + #events[at]
    call('XADD', P..'events:'..id, last..'-0', 'd', events[at])
  end
  first, size = trim(id, first, last, size)
  call('HSET', P..'stream:'..id, 'first', first, 'last', last, 'size', size)
  return last
end

local function finish(id)
  local session, name = string.match(id, '^([^/]*)/(.*)$')
  local writer = call('HGET', P..'stream:'..id, 'writer')
  call('HSET', P..'stream:'..id, 'ended', 1, 'will', '')
  call('SREM', P..'open:'..writer, id)
  call('ZADD', P..'streams:'..session, now + keep, name)
  expire(id, keep)
end

-- What a stream ends with if its writer cannot end it.
local function settle(id)
  local found = call('HMGET', P..'stream:'..id, 'will', 'ended')
  if not found[1] or found[2] then return end
  add(id, {found[1]}, 1)
  finish(id)
  wake(id)
end

-- Whether a worker's lease is over. Where nobody had a pulse for a whole lease, Redis was away and not the workers:
-- for one more lease nobody is dead, and each has the time to come back.
local function is_dead(worker)
  local expires = call('ZSCORE', P..'workers', worker)
  if not expires then return true end
  return tonumber(expires) < now and call('EXISTS', P..'pulse') == 1 and call('EXISTS', P..'grace') == 0
end

local function live(worker)
  call('ZADD', P..'workers', now + lease, worker)
end

local function drop_stream(id)
  local writer = call('HGET', P..'stream:'..id, 'writer')
  if writer then call('SREM', P..'open:'..writer, id) end
  call('DEL', P..'stream:'..id, P..'events:'..id)
  wake(id)
end

local function drop(session)
  for _, name in ipairs(call('ZRANGE', P..'streams:'..session, 0, -1)) do drop_stream(session..'/'..name) end
  call('DEL', P..'session:'..session, P..'streams:'..session)
  call('ZREM', P..'sessions', session)
end

local function sweep()
  local over = call('ZRANGEBYSCORE', P..'sessions', '-inf', now, 'LIMIT', 0, 300)
  for _, session in ipairs(over) do drop(session) end
end
"""

_ONCE: Final = """
-- A command that is sent again, since its connection died, is not done again. What `act` returns, a number, is
-- remembered.
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

OPEN = _script("""
-- A worker begins. The numbers of the last thing told or published, and of the last news: it hears what comes later.
live(me)
local found = call('HMGET', P..'clock', 'n', 'bus')
return {found[1] or '0', found[2] or '0'}
""")

BEAT = _script("""
-- A worker lives: ARGV[10] is the last id that it has read in its inbox. Whether it was known, and who is dead.
local was_known = call('ZSCORE', P..'workers', me) and 1 or 0
if call('EXISTS', P..'pulse') == 0 then call('SET', P..'grace', 1, 'PX', lease) end
call('SET', P..'pulse', 1, 'PX', lease)
live(me)
call('XTRIM', P..'inbox:'..me, 'MINID', ARGV[10])
sweep()
local late = {was_known}
for _, worker in ipairs(call('ZRANGEBYSCORE', P..'workers', '-inf', now)) do
  if is_dead(worker) then table.insert(late, worker) end
end
return late
""")

BURY = _script("""
-- Settle streams of a worker, ARGV[10], that is dead or (ARGV[11]) wants to end. How many it still may have.
local worker = ARGV[10]
if ARGV[11] == '1' then call('ZREM', P..'workers', worker) end
if not is_dead(worker) then return 0 end
for _, id in ipairs(call('SPOP', P..'open:'..worker, 100)) do settle(id) end
local left = call('SCARD', P..'open:'..worker)
if left == 0 then
  call('ZREM', P..'workers', worker)
  call('DEL', P..'inbox:'..worker)
  call('PEXPIRE', P..'done:'..worker, 60000)
end
return left
""")

# Sessions

CREATE = _once("""
-- ARGV: session, cap, name, value, …
local session, cap = ARGV[10], tonumber(ARGV[11])
drop(session)
if call('ZCARD', P..'sessions') >= cap then sweep() end
if call('ZCARD', P..'sessions') >= cap then return -2 end
for at = 12, #ARGV, 2 do call('HSET', P..'session:'..session, ARGV[at], ARGV[at + 1]) end
call('ZADD', P..'sessions', now + ttl, session)
call('PEXPIRE', P..'session:'..session, idle)
return 0
""")

LOAD = _script("""
if not touch(ARGV[10]) then return false end
return call('HGETALL', P..'session:'..ARGV[10])
""")

CHANGE = _script("""
-- ARGV: session, how many names to drop, these, name, value, …
local session, dropped = ARGV[10], tonumber(ARGV[11])
if not is_alive(session) then return 0 end
for at = 12, 11 + dropped do call('HDEL', P..'session:'..session, ARGV[at]) end
for at = 12 + dropped, #ARGV, 2 do call('HSET', P..'session:'..session, ARGV[at], ARGV[at + 1]) end
touch(session)
return 1
""")

DELETE = _once("""
local was_alive = is_alive(ARGV[10])
drop(ARGV[10])
return was_alive and 1 or 0
""")

# Streams

BEGIN = _once("""
-- ARGV: session, stream, will
local session, name = ARGV[10], ARGV[11]
if not is_alive(session) then return -1 end
live(me)
local id = session..'/'..name
drop_stream(id)
call('HSET', P..'stream:'..id, 'writer', me, 'will', ARGV[12], 'first', 1, 'last', 0, 'size', 0)
call('SADD', P..'open:'..me, id)
call('ZREMRANGEBYSCORE', P..'streams:'..session, '-inf', now)
call('ZADD', P..'streams:'..session, 'inf', name)
touch(session)
return 0
""")

APPEND = _once("""
-- ARGV: session, stream, whether they are the last, event, …
local id = ARGV[10]..'/'..ARGV[11]
if not touch(ARGV[10]) then return -1 end
local found = call('HMGET', P..'stream:'..id, 'writer', 'ended')
if not found[1] or found[2] then return -1 end
local last = add(id, ARGV, 13)
if ARGV[12] == '1' then finish(id) end
if ARGV[12] == '1' or #ARGV > 12 then wake(id) end
return last
""")

READ = _script("""
-- ARGV: session, stream, after. What follows the number: whether the stream has ended, and event, …
-- If it has not, this worker will be told of the next event.
local id, after = ARGV[10]..'/'..ARGV[11], tonumber(ARGV[12])
local writer = is_alive(ARGV[10]) and call('HGET', P..'stream:'..id, 'writer')
if not writer then return {-1} end
if is_dead(writer) then settle(id) end
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

TELL = _once("""
send(ARGV[10], 'd', ARGV[11])
return 0
""")

PUBLISH = _once("""
-- ARGV: how many to keep, news
local before = call('HGET', P..'clock', 'bus') or '0'
local number = tick()
call('HSET', P..'clock', 'bus', text(number))
call('XADD', P..'bus', 'MAXLEN', ARGV[10], text(number)..'-0', 'd', ARGV[11], 'before', before)
return number
""")

PUBLISHED = _script("""
-- What is on the bus after ARGV[10]: number, news, …; nothing at all where some of it was dropped or lost.
local after, last = tonumber(ARGV[10]), tonumber(call('HGET', P..'clock', 'bus') or 0)
if after > last then return false end
local found = call('XRANGE', P..'bus', text(after + 1)..'-0', '+')
if #found == 0 then return after == last and {} end
-- The first that was ever published names none before it; after a number, it tells of a loss.
local before = tonumber(found[1][2][4])
if before > after or (before == 0 and after > 0) then return false end
local answer = {}
for _, news in ipairs(found) do
  table.insert(answer, string.match(news[1], '^%d+'))
  table.insert(answer, news[2][2])
end
return answer
""")
