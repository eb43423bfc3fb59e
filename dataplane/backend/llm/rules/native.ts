import { compact, inside, listOf, objectOf, objectsOf, textOf, without } from '../common/read.ts'
import type { ChatFormat, JsonObject } from '../common/types.ts'
import { canForce, fitNumbers, isThinking } from './fit.ts'
import { NO_THOUGHT } from '../common/thoughts.ts'
import { CallIds } from './ids.ts'
import { fitSchema } from './schemas.ts'
import { fitThinking } from './thinking.ts'
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
    let isFirst = rules.thoughts === 'demanded'
    const calls = mapList(message['tool_calls'], (call) => {
      const thought = isFirst ? addThought(call) : call
      isFirst = false
      return withText(thought, 'id', (id) => ids.call(id))
    })
    if (calls !== message['tool_calls']) changed = { ...changed, tool_calls: calls }
    return withText(changed, 'tool_call_id', (id) => ids.result(id))
  })
  return messages === body['messages'] ? fitted : { ...fitted, messages }
}

/** Fits thinking, sampling, tools and messages of a request to Claude. */
function fitMessages(body: JsonObject, rules: TargetRules): JsonObject {
  const { reasoning, sampling } = rules
  const config = objectOf(body['output_config'])
  const effort = textOf(config?.['effort'])
  const given = objectOf(body['thinking'])
  const planned = fitThinking({ thinking: given, effort, maxTokens: body['max_tokens'] }, reasoning)
  const changes: Record<string, unknown> = {}
  if (planned.thinking !== given) changes['thinking'] = planned.thinking
  if (planned.effort !== effort) changes['output_config'] = filled(compact({ ...config, effort: planned.effort }))
  const thinking = planned.thinking?.['type']
  const { temperature, top_p: topP, top_k: topK } = body
  const numbers = fitNumbers({ temperature, topP, topK }, sampling, isThinking(thinking))
  if (numbers.temperature !== temperature) changes['temperature'] = numbers.temperature
  if (numbers.topP !== topP) changes['top_p'] = numbers.topP
  if (numbers.topK !== topK) changes['top_k'] = numbers.topK
  const choice = inside(body['tool_choice'])
  if ((choice['type'] === 'any' || choice['type'] === 'tool') && !canForce(reasoning, thinking === 'enabled'))
    changes['tool_choice'] = { ...without(choice, 'name'), type: 'auto' }
  const tools = mapList(body['tools'], (tool) => fitTool(tool, rules))
  if (tools !== body['tools']) changes['tools'] = tools
  const fitted = Object.keys(changes).length > 0 ? compact({ ...body, ...changes }) : body
  return fitTurns(fitted, rules)
}

const filled = (object: JsonObject): JsonObject | undefined => (Object.keys(object).length > 0 ? object : undefined)

/** A tool of the client; those of the provider have a type. */
function fitTool(tool: JsonObject, { schema }: TargetRules): JsonObject {
  const type = tool['type']
  if (type !== undefined && type !== null && type !== 'custom') return tool
  const given = objectOf(tool['input_schema'])
  const fitted = fitSchema(given, schema)
  return fitted === given ? tool : { ...tool, input_schema: fitted }
}

/** Fits the ids of the messages, leaves out thinking without signature and empty text, and puts instructions where the model accepts them. */
function fitTurns(body: JsonObject, rules: TargetRules): JsonObject {
  const ids = new CallIds(rules.ids)
  const messages = mapList(body['messages'], (message) => {
    const content = mapList(message['content'], (block) => fitBlock(block, ids))
    if (content === message['content']) return message
    return Array.isArray(content) && content.length === 0 ? undefined : { ...message, content }
  })
  const isPlaced = !objectsOf(messages).some(({ role }, at) => role === 'system' && (at === 0 || rules.roles.late === 'user'))
  if (isPlaced) return messages === body['messages'] ? body : { ...body, messages }
  return { ...body, ...placeInstructions(body['system'], objectsOf(messages), rules) }
}

/** Leading instructions become a part of the system prompt, later ones text of the user, behind the results of a call. */
function placeInstructions(system: unknown, messages: readonly JsonObject[], { roles }: TargetRules): JsonObject {
  const leading: unknown[] = []
  const placed: JsonObject[] = []
  let late: unknown[] = []
  const flush = (): void => {
    if (late.length > 0) placed.push({ role: 'user', content: late })
    late = []
  }
  for (const message of messages) {
    const blocks = blocksOf(message['content'])
    if (message['role'] !== 'system') {
      const hasResults = objectsOf(blocks).some(({ type }) => type === 'tool_result')
      if (hasResults && late.length > 0) {
        placed.push({ ...message, content: [...blocks, ...late] })
        late = []
      } else {
        flush()
        placed.push(message)
      }
    } else if (placed.length === 0) leading.push(...blocks)
    else if (roles.late === 'user') late.push(...blocks)
    else placed.push(message)
  }
  flush()
  return leading.length === 0 ? { messages: placed } : { system: [...blocksOf(system), ...leading], messages: placed }
}

/** A content or system prompt as a list of blocks. */
function blocksOf(content: unknown): readonly unknown[] {
  return typeof content === 'string' ? (content === '' ? [] : [{ type: 'text', text: content }]) : listOf(content)
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

/** A call with the signature that Gemini accepts in place of its own, where the call has none: another provider made it. */
function addThought(call: JsonObject): JsonObject {
  const extra = inside(call['extra_content'])
  const google = inside(extra['google'])
  if (textOf(google['thought_signature']) !== undefined) return call
  return { ...call, extra_content: { ...extra, google: { ...google, thought_signature: NO_THOUGHT } } }
}
