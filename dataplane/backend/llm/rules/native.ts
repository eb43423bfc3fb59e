import { compact, inside, listOf, objectOf, textOf, without } from '../common/read.ts'
import type { ChatFormat, JsonObject } from '../common/types.ts'
import { CallIds } from './ids.ts'
import type { TargetRules } from './types.ts'

/**
 * Changes a request that is sent in the client's format, so that its target accepts it (llm.md §7.15); the same object if it is accepted as it is. Fields
 * that the gateway does not know stay.
 */
export function fitNative(body: JsonObject, format: ChatFormat, rules: TargetRules): JsonObject {
  switch (format) {
    case 'completions':
      return fitCompletions(body, rules)
    case 'messages':
      return fitMessages(body, rules)
    case 'responses':
      return body
  }
}

/** Requests usage for streams, renames the token limit, and fits roles and ids of the messages. */
function fitCompletions(body: JsonObject, rules: TargetRules): JsonObject {
  let fitted = body
  const addsUsage = rules.asksStreamUsage && body['stream'] === true && (body['stream_options'] === undefined || body['stream_options'] === null)
  if (addsUsage) fitted = { ...fitted, stream_options: { include_usage: true } }
  if (rules.tokenLimit === 'max_completion_tokens' && body['max_tokens'] !== undefined)
    fitted = compact({ ...without(fitted, 'max_tokens'), max_completion_tokens: body['max_completion_tokens'] ?? body['max_tokens'] })
  const ids = new CallIds(rules.ids)
  const messages = mapList(body['messages'], (message) => {
    let changed = message
    if (message['role'] === 'developer' && !rules.roles.hasDeveloper) changed = { ...changed, role: 'system' }
    const calls = mapList(message['tool_calls'], (call) => withText(call, 'id', (id) => ids.call(id)))
    if (calls !== message['tool_calls']) changed = { ...changed, tool_calls: calls }
    return withText(changed, 'tool_call_id', (id) => ids.result(id))
  })
  return messages === body['messages'] ? fitted : { ...fitted, messages }
}

/** Fits the ids of the messages, and leaves out what Claude rejects: thinking without signature, and empty text. */
function fitMessages(body: JsonObject, rules: TargetRules): JsonObject {
  const ids = new CallIds(rules.ids)
  const messages = mapList(body['messages'], (message) => {
    const content = mapList(message['content'], (block) => fitBlock(block, ids))
    return content === message['content'] ? message : { ...message, content }
  })
  return messages === body['messages'] ? body : { ...body, messages }
}

function fitBlock(block: JsonObject, ids: CallIds): JsonObject | undefined {
  switch (block['type']) {
    case 'text':
      return /\S/.test(textOf(block['text']) ?? '-') ? block : undefined
    case 'thinking':
      return block['signature'] === '' ? undefined : block
    case 'tool_use':
      return withText(block, 'id', (id) => ids.call(id))
    case 'tool_result':
      return withText(block, 'tool_use_id', (id) => ids.result(id))
    default:
      return block
  }
}

/** The list with its objects changed, without those that become undefined; the same list if nothing changed. */
function mapList(list: unknown, change: (item: JsonObject) => JsonObject | undefined): unknown {
  if (!Array.isArray(list)) return list
  let changed: unknown[] | undefined
  for (const [at, item] of listOf(list).entries()) {
    const object = objectOf(item)
    const next = object === undefined ? item : change(object)
    if (changed === undefined && next !== item) changed = listOf(list).slice(0, at)
    if (next !== undefined || object === undefined) changed?.push(next)
  }
  return changed ?? list
}

function withText(object: JsonObject, key: string, change: (text: string) => string): JsonObject {
  const text = textOf(inside(object)[key])
  if (text === undefined) return object
  const next = change(text)
  return next === text ? object : { ...object, [key]: next }
}
