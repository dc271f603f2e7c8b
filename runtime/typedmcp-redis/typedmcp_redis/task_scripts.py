"""The Lua scripts of `RedisTaskStore`, each of which Redis runs atomically.

All keys begin with the store's prefix; `<id>` is a task. The empty client stands for all clients.

| key | type | content |
|---|---|---|
| `task:<id>` | hash | the members of the task, its worker, the number of its run, and when that run began |
| `questions:<id>`, `answers:<id>` | hash | questions that wait, and answers, by key |
| `expires` | sorted set | tasks, by the millisecond in which they are deleted |
| `counted` | hash | for each task: its bytes, a space, and the client that they count for |
| `numbers`, `sizes` | hash | for each client: its tasks, and their bytes |
| `workers` | sorted set | workers, by the millisecond in which their lease ends |
| `of:<owner>` | sorted set | tasks that an owner can list, by the millisecond in which they began |
| `owned:<worker>` | set | tasks that a worker runs; `-` is the worker of those that were released |
| `changes` | stream | tasks that have changed (`id`), and whether they have ended (`over`) |
| `clock` | string | the last number of a change |
| `pulse`, `grace` | string | see `RENEW` |
"""

from __future__ import annotations

import hashlib
from typing import Final

from typedmcp_redis.link import Script

__all__ = [
    "ANSWER", "ANSWERS", "ASK", "CLOSE", "CREATE", "END", "FULL", "FULL_FOR_CLIENT", "GONE", "LAST_CHANGE",
    "LIST_OWNED", "LOAD", "RELEASE", "RENEW", "SET_MESSAGE",
]  # fmt: skip

GONE: Final = -1
"""The answer of a script for a run that is not the task's current one, or a task that has ended."""
FULL: Final = -2
"""The answer of a script if all clients together have as much as the limits allow."""
FULL_FOR_CLIENT: Final = -3
"""The answer of a script if the client has its share."""

_COMMON: Final = """
-- ARGV[5] and ARGV[6] are of the link. The arguments of the script itself begin with ARGV[7].
local P, me, lease, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local call = redis.call
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local kept = ttl + 86400000  -- without workers, keys expire by themselves, at least a day late

local function text(number) return string.format('%.0f', number) end

local function get(id, ...) return call('HMGET', P..'task:'..id, ...) end

local function set(id, ...) call('HSET', P..'task:'..id, ...) end

-- Tell all workers that a task has changed. Numbers start at the time, so that they grow even if Redis loses its data.
local function announce(id, over)
  local number = math.max((tonumber(call('GET', P..'clock')) or 0) + 1, time[1] * 1000000 + time[2])
  call('SET', P..'clock', text(number))
  call('XADD', P..'changes', 'MAXLEN', '~', 10000, text(number)..'-0', 'id', id, 'over', over)
  set(id, 'updated', text(now))
end

local function is_open(id)
  local status = get(id, 'status')[1]
  return status == 'working' or status == 'input_required'
end

-- Return whether a run is the current one. An empty run stands for any.
local function is_current(id, run)
  return is_open(id) and (run == '' or get(id, 'run')[1] == run)
end

local function count(key, client, amount)
  if amount == 0 then return end
  if call('HINCRBY', P..key, '', amount) <= 0 then call('HDEL', P..key, '') end
  if client ~= '' and call('HINCRBY', P..key, client, amount) <= 0 then call('HDEL', P..key, client) end
  call('PEXPIRE', P..key, kept)
end

-- Count bytes of a task; for a new one, the task as well.
local function grow(id, client, size)
  local before = call('HGET', P..'counted', id)
  local total = size + (before and tonumber(string.match(before, '^%d+')) or 0)
  call('HSET', P..'counted', id, text(total)..' '..client)
  call('PEXPIRE', P..'counted', kept)
  count('sizes', client, size)
  if not before then count('numbers', client, 1) end
end

-- Return nothing if there is room for so many more tasks and bytes. `from` is the first of the four limits in ARGV.
local function find_limit(client, number, size, from)
  for place, key in ipairs({'numbers', 'sizes'}) do
    local added, limit = place == 1 and number or size, from + 2 * (place - 1)
    if added > 0 then
      if (tonumber(call('HGET', P..key, '')) or 0) + added > tonumber(ARGV[limit]) then return -2 end
      if client ~= '' and (tonumber(call('HGET', P..key, client)) or 0) + added > tonumber(ARGV[limit + 1]) then
        return -3
      end
    end
  end
end

local function delete(id)
  local worker, owner = unpack(get(id, 'worker', 'owner'))
  if worker then call('SREM', P..'owned:'..worker, id) end
  if owner then call('ZREM', P..'of:'..owner, id) end
  announce(id, 1)
  call('DEL', P..'task:'..id, P..'questions:'..id, P..'answers:'..id)
  call('ZREM', P..'expires', id)
  local size, client = string.match(call('HGET', P..'counted', id) or '', '^(%d+) (.*)$')
  if size then
    count('sizes', client, -tonumber(size))
    count('numbers', client, -1)
    call('HDEL', P..'counted', id)
  end
end

local function delete_old()
  for _, id in ipairs(call('ZRANGEBYSCORE', P..'expires', '-inf', now, 'LIMIT', 0, 100)) do delete(id) end
end

local function finish(id, status, content, message)
  set(id, 'status', status, 'content', content, 'message', message)
  call('HDEL', P..'task:'..id, 'call')
  call('DEL', P..'questions:'..id, P..'answers:'..id)
  call('SREM', P..'owned:'..get(id, 'worker')[1], id)
  announce(id, 1)
end
"""


def _script(text: str) -> Script:
    whole = _COMMON + text
    return Script(hashlib.sha1(whole.encode(), usedforsecurity=False).hexdigest(), whole)


CREATE: Final = _script("""
local id, owner, client, size = ARGV[7], ARGV[8], ARGV[9], tonumber(ARGV[10])
local stored, given = ARGV[11], ARGV[12]
delete_old()
if call('EXISTS', P..'task:'..id) == 1 then return get(id, 'created')[1] end  -- the command came twice
local limit = find_limit(client, 1, size, 13)
if limit then return limit end
set(id, 'owner', owner, 'client', client, 'status', 'working', 'created', text(now), 'updated', text(now),
    'worker', me, 'run', 1, 'began', text(now), 'takeovers', 0, 'message', '', 'content', '')
if stored ~= '' then set(id, 'call', stored) end
for place = 17, #ARGV, 2 do call('HSET', P..'answers:'..id, ARGV[place], ARGV[place + 1]) end
for _, key in ipairs({'task:', 'answers:'}) do call('PEXPIRE', P..key..id, kept) end
call('ZADD', P..'expires', now + ttl, id)
if owner ~= 'null' then
  call('ZADD', P..'of:'..owner, now, id)
  call('PEXPIRE', P..'of:'..owner, kept)
end
call('SADD', P..'owned:'..me, id)
grow(id, client, size)
return text(now)
""")
"""Create a task."""

LOAD: Final = _script("""
local id = ARGV[7]
local expires = call('ZSCORE', P..'expires', id)
if not expires or tonumber(expires) <= now then return nil end
local members = get(id, 'owner', 'status', 'created', 'updated', 'message', 'content', 'error')
return {members, call('HGETALL', P..'questions:'..id)}
""")
"""Return a task and its questions."""

LIST_OWNED: Final = _script("""
local owner, after, count = ARGV[7], ARGV[8], tonumber(ARGV[9])
delete_old()
local first = 0
if after ~= '' then
  local rank = call('ZRANK', P..'of:'..owner, after)
  if not rank then return -1 end
  first = rank + 1
end
local found = {}
for _, id in ipairs(call('ZRANGE', P..'of:'..owner, first, first + count - 1)) do
  local status, created, updated, message, failed = unpack(get(id, 'status', 'created', 'updated', 'message', 'error'))
  if status then table.insert(found, {id, status, created, updated, message, failed or ''}) end
end
return found
""")
"""Return tasks of an owner."""

SET_MESSAGE: Final = _script("""
local id, run, message = ARGV[7], ARGV[8], ARGV[9]
if not is_current(id, run) then return -1 end
set(id, 'message', message)
announce(id, 0)
return 1
""")
"""Set the text of a task."""

ASK: Final = _script("""
local id, run, size = ARGV[7], ARGV[8], tonumber(ARGV[9])
if not is_current(id, run) then return -1 end
local added = {}
for place = 14, #ARGV, 2 do
  local key = ARGV[place]
  if call('HEXISTS', P..'answers:'..id, key) == 0 and call('HEXISTS', P..'questions:'..id, key) == 0 then
    table.insert(added, key)
    table.insert(added, ARGV[place + 1])
  end
end
if #added == 0 then return 1 end
local client = get(id, 'client')[1]
local limit = find_limit(client, 0, size, 10)
if limit then return limit end
call('HSET', P..'questions:'..id, unpack(added))
call('PEXPIRE', P..'questions:'..id, kept)
grow(id, client, size)
set(id, 'status', 'input_required')
announce(id, 0)
return 1
""")
"""Add questions that were not asked before."""

ANSWERS: Final = _script("""
local id, run = ARGV[7], ARGV[8]
if not is_current(id, run) then return -1 end
local found = {}
for place = 9, #ARGV do
  local answer = call('HGET', P..'answers:'..id, ARGV[place])
  if answer then
    table.insert(found, ARGV[place])
    table.insert(found, answer)
  end
end
return found
""")
"""Return the answers to some questions."""

ANSWER: Final = _script("""
local id, size = ARGV[7], tonumber(ARGV[8])
if not is_open(id) then return {} end
local taken, fields = {}, {}
for place = 13, #ARGV, 2 do
  if call('HEXISTS', P..'questions:'..id, ARGV[place]) == 1 then
    table.insert(taken, ARGV[place])
    table.insert(fields, ARGV[place])
    table.insert(fields, ARGV[place + 1])
  end
end
if #taken == 0 then return {} end
local client = get(id, 'client')[1]
local limit = find_limit(client, 0, size, 9)
if limit then return limit end
call('HSET', P..'answers:'..id, unpack(fields))
call('PEXPIRE', P..'answers:'..id, kept)
call('HDEL', P..'questions:'..id, unpack(taken))
grow(id, client, size)
set(id, 'status', call('EXISTS', P..'questions:'..id) == 1 and 'input_required' or 'working')
announce(id, 0)
return taken
""")
"""Store the answers to questions that wait."""

END: Final = _script("""
local id, run, status, content, message, size = ARGV[7], ARGV[8], ARGV[9], ARGV[10], ARGV[11], tonumber(ARGV[12])
if not is_current(id, run) then return -1 end
local client = get(id, 'client')[1]
if size > 1024 then  -- a short end always fits
  local limit = find_limit(client, 0, size, 13)
  if limit then return limit end
end
grow(id, client, size)
finish(id, status, content, message)
if ARGV[17] ~= '' then set(id, 'error', '1') end
return 1
""")
"""End a task."""

RELEASE: Final = _script("""
local id, run = ARGV[7], ARGV[8]
if not is_current(id, run) or get(id, 'worker')[1] ~= me then return -1 end
set(id, 'worker', '-')
call('SMOVE', P..'owned:'..me, P..'owned:-', id)
return 1
""")
"""Give up a run, so that another worker takes the task over."""

RENEW: Final = _script("""
local takeovers, content, message = tonumber(ARGV[7]), ARGV[8], ARGV[9]
delete_old()

-- If no worker has renewed its lease for a whole lease, it was Redis that was away: then no worker counts as dead for
-- one more lease, so that each can come back.
if call('EXISTS', P..'pulse') == 0 then call('SET', P..'grace', '', 'PX', lease) end
call('SET', P..'pulse', '', 'PX', lease)
call('ZADD', P..'workers', now + lease, me)

local running, lost, taken = {}, {}, {}
for place = 10, #ARGV, 2 do
  local id, run = ARGV[place], ARGV[place + 1]
  running[id] = true
  if not is_current(id, run) or get(id, 'worker')[1] ~= me then table.insert(lost, id) end
end

-- Run a task again, whose worker does not run it, or end it.
local function recover(id, worker)
  local number, stored, client, run = unpack(get(id, 'takeovers', 'call', 'client', 'run'))
  if not is_open(id) then
    call('SREM', P..'owned:'..worker, id)
  elseif stored and (worker == '-' or tonumber(number) < takeovers) then
    call('SMOVE', P..'owned:'..worker, P..'owned:'..me, id)
    run = text(tonumber(run) + 1)
    set(id, 'worker', me, 'run', run, 'began', text(now), 'takeovers', number + (worker == '-' and 0 or 1))
    for _, each in ipairs({id, run, client, stored}) do table.insert(taken, each) end
  else
    finish(id, 'failed', content, message)
  end
end

for _, id in ipairs(call('SMEMBERS', P..'owned:'..me)) do
  -- What began a moment ago may be on its way here.
  if not running[id] and tonumber(get(id, 'began')[1] or 0) + lease < now then recover(id, me) end
end
for _, id in ipairs(call('SRANDMEMBER', P..'owned:-', 100)) do recover(id, '-') end
if call('EXISTS', P..'grace') == 0 then
  for _, worker in ipairs(call('ZRANGEBYSCORE', P..'workers', '-inf', now)) do
    for _, id in ipairs(call('SRANDMEMBER', P..'owned:'..worker, 100)) do recover(id, worker) end
    if call('EXISTS', P..'owned:'..worker) == 0 then call('ZREM', P..'workers', worker) end
  end
end
return {lost, taken}
""")
"""Renew the lease of this worker, and take over the tasks of those that have died."""

LAST_CHANGE: Final = _script("""
return call('GET', P..'clock') or '0'
""")
"""Return the number of the last change."""

CLOSE: Final = _script("""
call('ZADD', P..'workers', 0, me)
return 1
""")
"""End the lease of this worker."""
