import { toScript } from '../../runtime/value-store.ts'

/*
 * A counter in Redis is a hash for each window: `v` is the amount, reservations included; `g` the id of the reservation that created the
 * hash, by which a loss of data is noticed; `a` the highest alert; and each reservation that is not settled has a field with its id.
 */

/**
 * Reserves from all limits or from none. Keys of each limit: its hashes of the previous, the current and the next window. Arguments: an id,
 * and for each limit the amount, the limit, the part of the previous window that counts or -1, whether it is forced, whether the
 * reservation is to be settled, and the milliseconds that a hash stays.
 * A hash of the next window exists if the clock of another replica is ahead: then that is the current window.
 * Returns 1 or 0, and for each limit: 1 if the window is the next one, 1 if it is admitted, the amounts of both windows, `g`.
 */
export const RESERVE = toScript(`
local result, isAdmitted, hashes = {0}, 1, {}
local function amountOf(key)
  return assert(tonumber(redis.call('HGET', key, 'v') or '0'), 'not a counter')
end
for i = 1, #KEYS / 3 do
  local k, a = (i - 1) * 3, 1 + (i - 1) * 6
  local previous, current, isNext, part = KEYS[k + 1], KEYS[k + 2], 0, tonumber(ARGV[a + 3])
  if redis.call('EXISTS', KEYS[k + 3]) == 1 then
    previous, current, isNext = current, KEYS[k + 3], 1
    if part >= 0 then part = 1 end
  end
  local used, before = amountOf(current), 0
  if part > 0 then before = amountOf(previous) end
  local left = tonumber(ARGV[a + 2]) - used - before * math.max(part, 0)
  local admits = 0
  if left + 0.000001 >= 1 then admits = 1 end
  if admits == 0 and ARGV[a + 4] ~= '1' then isAdmitted = 0 end
  hashes[i] = current
  for _, value in ipairs({isNext, admits, used, before, ''}) do result[#result + 1] = value end
end
result[1] = isAdmitted
if isAdmitted == 0 then return result end
for i, key in ipairs(hashes) do
  local a = 1 + (i - 1) * 6
  redis.call('HINCRBY', key, 'v', ARGV[a + 1])
  if ARGV[a + 5] == '1' then redis.call('HSET', key, ARGV[1], ARGV[a + 1]) end
  if redis.call('HSETNX', key, 'g', ARGV[1]) == 1 then redis.call('PEXPIRE', key, ARGV[a + 6]) end
  result[i * 5 + 1] = redis.call('HGET', key, 'g')
end
return result
`)

/**
 * Settles reservations. Keys: a hash for each. Arguments of each: the id of the reservation, or an empty text if it has no field; the
 * amount that was used, or the change without a field; `g` of the reservation; and the milliseconds that a new hash stays.
 * A reservation is settled once, however often it is sent. If the hash was lost with the reservation, what was used is added;
 * the new hash has another `g` than the lost one, which may be that of the same reservation.
 * Returns the amount of each hash.
 */
export const SETTLE = toScript(`
local result = {}
for i, key in ipairs(KEYS) do
  local a = (i - 1) * 4
  local id, used, change = ARGV[a + 1], tonumber(ARGV[a + 2]), 0
  local isSame = redis.call('HGET', key, 'g') == ARGV[a + 3]
  if id == '' then
    if isSame then change = used end
  else
    local taken = redis.call('HGET', key, id)
    if taken then
      redis.call('HDEL', key, id)
      change = used - tonumber(taken)
    elseif not isSame then
      change = used
    end
  end
  local amount = tonumber(redis.call('HGET', key, 'v') or '0')
  if change ~= 0 then
    amount = redis.call('HINCRBY', key, 'v', string.format('%.0f', math.max(change, -amount)))
    if id ~= '' and redis.call('HSETNX', key, 'g', id .. '+') == 1 then redis.call('PEXPIRE', key, ARGV[a + 4]) end
  end
  result[i] = amount
end
return result
`)

/** Claims an alert. Key: the hash. Argument: the percentage. Returns 1 unless it, or a higher one, was claimed. */
export const CLAIM_ALERT = toScript(`
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
if tonumber(redis.call('HGET', KEYS[1], 'a') or '0') >= tonumber(ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], 'a', ARGV[1])
return 1
`)
