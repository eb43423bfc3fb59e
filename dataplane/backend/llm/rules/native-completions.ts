import { compact, inside, objectOf, objectsOf, textOf, without } from '../common/read.ts'
import { NO_THOUGHT } from '../common/thoughts.ts'
import type { JsonObject } from '../common/types.ts'
import { fitNativeSampling } from './fit.ts'
import { CallIds } from './ids.ts'
import { withList, withMember, withText } from './lists.ts'
import { fitImageUrl } from './media.ts'
import { ToolNames } from './names.ts'
import { fitOrder } from './order.ts'
import { fitSchema } from './schemas/index.ts'
import { nearestEffort } from './thinking.ts'
import type { TargetRules } from './types.ts'
import { fitUser } from './users.ts'

/** A request as its target accepts it, with the names of tools in it that differ from those of the client. */
export interface FittedBody {
  readonly body: JsonObject
  readonly toolNames: ReadonlyMap<string, string>
  readonly omitted: readonly string[]
}

/** Fits a Chat Completions request: usage of streams, token limit, sampling, tools, and roles, ids, names and members of the messages. */
export function fitCompletions(body: JsonObject, rules: TargetRules): FittedBody {
  const { body: known, omitted: dropped } = fitFields(body, rules)
  const { body: sampled, omitted } = fitNativeSampling(known, rules.sampling, isReasoning(textOf(body['reasoning_effort'])))
  let fitted = sampled
  const addsUsage = rules.asksStreamUsage && body['stream'] === true && (body['stream_options'] === undefined || body['stream_options'] === null)
  if (addsUsage) fitted = { ...fitted, stream_options: { include_usage: true } }
  if (rules.tokenLimit === 'max_completion_tokens' && body['max_tokens'] !== undefined)
    fitted = compact({ ...without(fitted, 'max_tokens'), max_completion_tokens: body['max_completion_tokens'] ?? body['max_tokens'] })
  else if (rules.tokenLimit === 'max_tokens' && body['max_completion_tokens'] !== undefined)
    // Mistral rejects the newer field, and Ollama ignores it: the response has no limit.
    fitted = compact({ ...without(fitted, 'max_completion_tokens'), max_tokens: body['max_completion_tokens'] ?? body['max_tokens'] })
  fitted = withText(fitted, 'user', (user) => fitUser(user, rules.user))
  const names = namesOf(body, rules)
  const rename = (name: string): string => names.safe(name)
  const keepsMarks = rules.cache.marker === 'native'
  fitted = withList(fitted, 'tools', (tool) => {
    const called = withMember(tool, 'function', (given) => fitFunction(keepsMarks ? given : without(given, 'cache_control'), rename, rules))
    return keepsMarks ? called : without(called, 'cache_control')
  })
  fitted = withMember(fitted, 'tool_choice', (choice) => withMember(choice, 'function', (called) => withText(called, 'name', rename)))
  const ids = new CallIds(rules.ids)
  fitted = withList(fitted, 'messages', (message) => fitMessage(message, rules, ids, rename))
  if (Array.isArray(fitted['messages'])) {
    const ordered = fitOrder(fitted['messages'], rules.roles)
    if (ordered !== fitted['messages']) fitted = { ...fitted, messages: ordered }
  }
  return { body: fitted, toolNames: names.restored, omitted: [...dropped, ...omitted] }
}

/**
 * Fits the fields of a Chat Completions request whose names and values differ by server: those that it rejects or has under another name, the format of the
 * response, and how reasoning is asked for.
 */
export function fitFields(body: JsonObject, { drops, renames, reasoning, schema }: TargetRules): { readonly body: JsonObject; readonly omitted: string[] } {
  const omitted = drops.filter((field) => body[field] !== undefined)
  let fitted = omitted.length > 0 ? without(body, ...omitted) : body
  const format = schema.output === 'schema' ? undefined : textOf(inside(fitted['response_format'])['type'])
  if (format === 'json_schema' && schema.output === 'object') {
    omitted.push('response_format.json_schema')
    fitted = { ...fitted, response_format: { type: 'json_object' } }
  } else if (format !== undefined && schema.output === 'none') {
    if (format !== 'text') omitted.push('response_format')
    fitted = without(fitted, 'response_format')
  }
  const effort = reasoning.field === 'effort' ? undefined : textOf(fitted['reasoning_effort'])
  if (effort !== undefined) fitted = { ...without(fitted, 'reasoning_effort'), ...writeEffort(effort, reasoning, fitted) }
  for (const [name, theirs] of Object.entries(renames)) {
    const { [name]: value, ...rest } = fitted
    if (value !== undefined) fitted = { ...rest, [theirs]: fitted[theirs] ?? value }
  }
  return { body: fitted, omitted }
}

/** An effort in the fields of a server. Those that the client has set stay. */
function writeEffort(effort: string, { field, efforts }: TargetRules['reasoning'], given: JsonObject): JsonObject {
  const isOn = effort !== 'none'
  switch (field) {
    case 'thinking':
      return { thinking: given['thinking'] ?? { type: isOn ? 'enabled' : 'disabled' } }
    case 'thinkingEffort':
      return compact({
        thinking: given['thinking'] ?? { type: isOn ? 'enabled' : 'disabled' },
        reasoning_effort: isOn ? nearestEffort(effort, efforts) : undefined,
      })
    case 'enable_thinking':
      return { enable_thinking: given['enable_thinking'] ?? isOn }
    default:
      return {}
  }
}

/** Whether an effort makes a model reason that does not by default. */
export const isReasoning = (effort: string | undefined): boolean => effort !== undefined && effort !== 'none'

/** The names of a request's tools, calls and choice. */
function namesOf(body: JsonObject, rules: TargetRules): ToolNames {
  const called = (item: JsonObject): string[] => {
    const name = textOf(inside(item['function'] ?? item['custom'])['name'])
    return name === undefined ? [] : [name]
  }
  const calls = objectsOf(body['messages']).flatMap((message) => objectsOf(message['tool_calls']).flatMap(called))
  return new ToolNames(objectsOf(body['tools']).flatMap(called), [...calls, ...called(inside(body['tool_choice']))], rules.names)
}

function fitFunction(called: JsonObject, rename: (name: string) => string, { schema }: TargetRules): JsonObject {
  const named = withText(schema.hasStrict ? called : without(called, 'strict'), 'name', rename)
  const given = objectOf(called['parameters'])
  const fitted = fitSchema(given, schema)
  return fitted === given ? named : { ...named, parameters: fitted }
}

function fitMessage(given: JsonObject, rules: TargetRules, ids: CallIds, rename: (name: string) => string): JsonObject | undefined {
  const { roles, reasoning, thoughts, cache } = rules
  // Members that the gateway or a server of another vendor has added.
  const hidden =
    reasoning.history === 'text' || reasoning.history === 'unknown' ? ['reasoning_signature'] : ['reasoning_signature', 'reasoning_content', 'reasoning']
  const isMarked = cache.marker === 'native'
  let message = without(given, ...hidden, ...(isMarked ? [] : ['cache_control']), ...(roles.hasNames ? [] : ['name']))
  if (message['role'] === 'developer' && !roles.hasDeveloper) message = { ...message, role: 'system' }
  message = withList(message, 'content', (part) => {
    const fitted = withMember(part, 'image_url', (image) => withText(image, 'url', fitImageUrl))
    return isMarked ? fitted : without(fitted, 'cache_control')
  })
  let isFirst = thoughts === 'demanded'
  message = withList(message, 'tool_calls', (call) => {
    const thought = isFirst ? addThought(call) : thoughts === 'none' ? without(call, 'extra_content') : call
    isFirst = false
    const named = withMember(thought, 'function', (called) => withText(called, 'name', rename))
    return withText(named, 'id', (id) => ids.call(id))
  })
  return fitContent(
    withText(message, 'tool_call_id', (id) => ids.result(id)),
    rules,
  )
}

const isBlank = (text: unknown): boolean => typeof text === 'string' && !/\S/.test(text)

/** A message with content that the target accepts; undefined if it has none. */
function fitContent(given: JsonObject, { roles, blanks }: TargetRules): JsonObject | undefined {
  let message = given
  if (message['role'] === 'assistant' && !roles.hasRefusal) {
    const refusal = textOf(message['refusal'])
    // The members of OpenAI's responses, which clients send back (@mistralai/mistralai 2.7.0 has none of them).
    message = without(message, 'refusal', ...['annotations', 'audio', 'function_call'].filter((key) => isEmpty(message[key])))
    if (refusal !== undefined && isEmpty(message['content'])) message = { ...message, content: refusal }
  }
  if (message['role'] === 'tool') return message
  if (blanks.isDropped) message = withList(message, 'content', (part) => (part['type'] === 'text' && isBlank(part['text']) ? undefined : part))
  const hasMore = objectsOf(message['tool_calls']).length > 0 || isFilled(message['refusal']) || message['function_call'] !== undefined
  if (isEmpty(message['content']) || (blanks.isDropped && isBlank(message['content']))) {
    if (hasMore) return blanks.isDropped && !isEmpty(message['content']) ? { ...message, content: null } : message
    if (blanks.isDropped) return undefined
    return message['role'] === 'assistant' ? { ...message, content: '' } : message
  }
  return message
}

const isFilled = (value: unknown): boolean => typeof value === 'string' && value !== ''
const isEmpty = (value: unknown): boolean => value === undefined || value === null || (Array.isArray(value) && value.length === 0)

/** A call with the signature that Gemini accepts in place of its own, where the call has none: another provider made it. */
function addThought(call: JsonObject): JsonObject {
  const extra = inside(call['extra_content'])
  const google = inside(extra['google'])
  if (textOf(google['thought_signature']) !== undefined) return call
  return { ...call, extra_content: { ...extra, google: { ...google, thought_signature: NO_THOUGHT } } }
}
