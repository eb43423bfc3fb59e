import { createHash } from 'node:crypto'
import { BEYOND_INTEGERS, checkCall, DEFAULT_LIMITS, NOT_AN_INTEGER, type KeyValueCall, type KeyValueResult } from '../../runtime/key-value.ts'
import { toScript, type Script, type ScriptStore } from '../../runtime/value-store.ts'

/** A value without a time to live stays so long after it was last set: nothing else removes the values of a plugin that is no longer used. */
const MAX_TTL_MS = 30 * 86_400_000

/** A value of another program may have any type and size. */
const GET = toScript(`
local value = redis.call('GET', KEYS[1])
if value and #value > tonumber(ARGV[1]) then return false end
return value
`)
const SET = toScript(`return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])`)
const DELETE = toScript(`return redis.call('UNLINK', KEYS[1])`)
/** Returns a text if the value cannot be incremented. */
const INCREMENT = toScript(`
local before = redis.call('GET', KEYS[1])
if before and (#before > 17 or not string.match(before, '^%-?%d+$')) then return 'integer' end
if math.abs(tonumber(before or '0') + tonumber(ARGV[1])) > 9007199254740991 then return 'range' end
local sum = redis.call('INCRBY', KEYS[1], ARGV[1])
if not before then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return sum
`)

/**
 * Runs an operation on the values of a plugin in Redis, which replicas with a policy of the same name share.
 * Rejects with a TypeError for an invalid call, and with an Error if Redis cannot be used.
 * @param plugin `namespace/policy/plugin`
 */
export async function runRemote(store: ScriptStore | undefined, plugin: string, call: KeyValueCall): Promise<KeyValueResult> {
  checkCall(call, DEFAULT_LIMITS)
  if (store === undefined) throw new Error('kv cannot be used: config.redis is not set')
  const key = `proxy:plugin:${createHash('sha256').update(plugin).digest('base64url')}:${call.key}`
  const [script, args] = commandOf(call)
  const outcome = await store.evaluate(script, [key], args)
  if ('error' in outcome) throw new Error(`kv cannot be used: ${outcome.error}`)
  const { value } = outcome
  switch (call.operation) {
    case 'get':
      return Buffer.isBuffer(value) ? value.toString() : undefined
    case 'set':
      return undefined
    case 'delete':
      return value === 1
    case 'increment':
      if (typeof value === 'number') return value
      throw new TypeError(String(value) === 'range' ? BEYOND_INTEGERS : NOT_AN_INTEGER)
  }
}

function commandOf(call: KeyValueCall): readonly [Script, readonly string[]] {
  switch (call.operation) {
    case 'get':
      return [GET, [String(DEFAULT_LIMITS.maxValueBytes)]]
    case 'set':
      return [SET, [call.value, ttlOf(call.ttlMs)]]
    case 'delete':
      return [DELETE, []]
    case 'increment':
      return [INCREMENT, [String(call.by), ttlOf(call.ttlMs)]]
  }
}

const ttlOf = (ttlMs = MAX_TTL_MS): string => String(Math.min(MAX_TTL_MS, Math.max(1, Math.ceil(ttlMs))))
