import { readFileSync } from 'node:fs'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { without } from '../common/read.ts'
import type { JsonObject, Target } from '../common/types.ts'
import { schemaOfType } from './declarations.ts'

/**
 * For tests: whether an API accepts a request, by the types of its vendor's SDK and by what it enforces beyond (docs of the vendors, and the reports that
 * llm.md §7.15 names). Written without the table of rules, which it checks.
 */

const ajv = new Ajv2020({ strict: false, allErrors: false, inlineRefs: false })
const compiled = new Map<string, ValidateFunction>()

function validator(name: string, load: () => JsonObject): ValidateFunction {
  let found = compiled.get(name)
  if (!found) compiled.set(name, (found = ajv.compile(load())))
  return found
}

const bodies: Readonly<Record<Target, () => ValidateFunction>> = {
  openai: completions,
  azure: completions,
  compatible: completions,
  gemini: completions,
  vertex: completions,
  responses: () => validator('responses', () => schemaOfType('openai', 'resources/responses/responses', 'ResponseCreateParamsBase')),
  anthropic: messages,
  vertexClaude: messages,
  converse: () => validator('converse', () => JSON.parse(readFileSync(new URL('bedrock/converse.schema.json', import.meta.url), 'utf8')) as JsonObject),
}

function completions(): ValidateFunction {
  return validator('completions', () => schemaOfType('openai', 'resources/chat/completions/completions', 'ChatCompletionCreateParamsBase'))
}

function messages(): ValidateFunction {
  return validator('messages', () => schemaOfType('@anthropic-ai/sdk', 'resources/messages/messages', 'MessageCreateParamsBase'))
}

/** What an API would reject in a request; empty if it accepts the request. */
export function violations(target: Target, model: string, body: JsonObject): string[] {
  const sent = JSON.parse(JSON.stringify(body)) as JsonObject
  const found =
    target === 'converse'
      ? checkConverse(sent, model)
      : bodies[target] === messages
        ? checkMessages(sent, model)
        : target === 'responses'
          ? checkResponses(sent)
          : checkCompletions(sent, target, model)
  const validate = bodies[target]()
  if (!validate(target === 'converse' ? sent : withoutExtensions(sent, target, model))) found.push(...describe(validate, sent))
  return found
}

/** The deepest errors: those of the branch of a union that fits best. */
function describe({ errors }: ValidateFunction, sent: JsonObject): string[] {
  const depth = Math.max(...(errors ?? []).map(({ instancePath }) => instancePath.split('/').length))
  const worst = (errors ?? []).filter(({ instancePath }) => instancePath.split('/').length === depth)
  return [
    ...new Set(worst.map(({ instancePath, message, params }) => `${instancePath} ${message ?? ''} ${JSON.stringify(params)}`)),
    JSON.stringify(sent).slice(0, 3000),
  ]
}

/** Without members that a server has beside those of OpenAI. */
function withoutExtensions(body: JsonObject, target: Target, model: string): JsonObject {
  // The server of a model that the gateway does not know may be one that wants reasoning back.
  const isThinking = /deepseek|kimi|glm|minimax|qwen|my-model/.test(model)
  const isGoogle = target === 'gemini' || target === 'vertex'
  // OpenAI accepts the messages of its responses.
  const isOpenai = target === 'openai' || target === 'azure'
  if (bodies[target] !== completions || (!isThinking && !isGoogle && !isOpenai && !/mistral/.test(model))) return body
  return {
    ...body,
    messages: list(body['messages']).map(({ reasoning_content: reasoning, tool_calls: calls, annotations, prefix, ...message }) => ({
      ...message,
      ...(!isOpenai && annotations !== undefined && { annotations }),
      ...(!/mistral/.test(model) && prefix !== undefined && { prefix }),
      ...(!isThinking && reasoning !== undefined && { reasoning_content: reasoning }),
      ...(calls !== undefined && { tool_calls: isGoogle ? list(calls).map((call) => without(call, 'extra_content')) : calls }),
    })),
  }
}

const list = (value: unknown): Record<string, unknown>[] => (Array.isArray(value) ? (value as Record<string, unknown>[]) : [])
const nameOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value ?? null))
const compare = (a: string, b: string): number => (a < b ? -1 : 1)
const isBlank = (text: unknown): boolean => typeof text === 'string' && !/\S/.test(text)

/** Chat Completions: each call has one result directly behind it; ids and names by server. */
function checkCompletions(body: JsonObject, target: Target, model: string): string[] {
  const found: string[] = []
  const isGoogle = target === 'gemini' || target === 'vertex'
  const idPattern = /mi(?:s|x)tral/.test(model) ? /^[a-zA-Z0-9]{9}$/ : target === 'openai' || target === 'azure' ? /^[^\s]{1,40}$/ : /^[^\s]{1,64}$/
  let open: string[] = []
  for (const [at, message] of list(body['messages']).entries()) {
    const place = `messages[${at}]`
    const { role, content, tool_calls: given } = message
    const calls = list(given)
    if (role === 'tool') {
      const id = nameOf(message['tool_call_id'])
      if (!open.includes(id)) found.push(`${place}: the result of ${id} is not behind its call`)
      open = open.filter((one, index) => index !== open.indexOf(id) || one !== id)
    } else {
      if (open.length > 0) found.push(`${place}: calls without result: ${open.join()}`)
      open = calls.map(({ id }) => nameOf(id))
      if (new Set(open).size < open.length && !idPattern.test('a b')) if (/mistral/.test(model)) found.push(`${place}: ids are not unique`)
    }
    for (const { id, function: called } of calls) {
      if (!idPattern.test(nameOf(id))) found.push(`${place}: id ${nameOf(id)}`)
      checkName(called as JsonObject, isGoogle ? /^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/ : /^[a-zA-Z0-9_-]{1,64}$/, place, found)
    }
    if (
      role === 'assistant' &&
      calls.length === 0 &&
      typeof message['refusal'] !== 'string' &&
      (content === undefined || content === null || (Array.isArray(content) && content.length === 0))
    )
      found.push(`${place}: a message of the assistant without content and calls`)
    if (/mistral/.test(model) && role === 'user' && list(body['messages'])[at - 1]?.['role'] === 'tool')
      found.push(`${place}: a message of the user behind results`)
    if (role === 'developer' && !/gpt-|o\d/.test(model)) found.push(`${place}: role developer`)
    if (isGoogle && calls.length === 0 && role !== 'tool' && (content === '' || list(content).some(({ text }) => text === '')))
      found.push(`${place}: empty content`)
    if (/gemini-3/.test(model) && calls.length > 0 && !JSON.stringify(calls[0]?.['extra_content'] ?? '').includes('"thought_signature":"'))
      found.push(`${place}: the first call has no thought signature`)
    if (/__thought__/.test(JSON.stringify(calls))) found.push(`${place}: the gateway's mark in an id`)
  }
  if (open.length > 0) found.push(`calls without result at the end: ${open.join()}`)
  for (const [at, { function: called }] of list(body['tools']).entries()) {
    const { parameters } = called as { parameters?: JsonObject }
    checkName(called as JsonObject, isGoogle ? /^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/ : /^[a-zA-Z0-9_-]{1,64}$/, `tools[${at}]`, found)
    if (isGoogle && parameters !== undefined) checkGoogleSchema(parameters, `tools[${at}]`, found)
  }
  return found
}

function checkName(called: JsonObject, pattern: RegExp, place: string, found: string[]): void {
  if (!pattern.test(nameOf(called['name']))) found.push(`${place}: name ${nameOf(called['name'])}`)
}

/** The subset of JSON Schema that Google reads, by the type Schema of its SDK; lengths are numbers in JSON. */
function checkGoogleSchema(schema: JsonObject, place: string, found: string[]): void {
  const validate = validator(
    'google',
    () =>
      JSON.parse(
        JSON.stringify(schemaOfType('@google/genai', 'dist/genai', 'Schema')).replaceAll(
          /("(?:max|min)(?:Items|Length|Properties)":\{"type":)"string"/g,
          '$1"integer"',
        ),
      ) as JsonObject,
  )
  const upper = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(upper)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value).map(([key, member]) => [
        key,
        key === 'type' && typeof member === 'string'
          ? member.toUpperCase()
          : key === 'properties'
            ? Object.fromEntries(Object.entries(member as object).map(([name, one]) => [name, upper(one)]))
            : upper(member),
      ]),
    )
  }
  if (!validate(upper(schema))) found.push(`${place}: ${JSON.stringify(validate.errors?.[0])} in ${JSON.stringify(schema)}`)
  const visit = (one: JsonObject, isRoot: boolean): void => {
    if (isRoot && one['type'] !== 'object') found.push(`${place}: the root is no object`)
    if (one['type'] === 'array' && one['items'] === undefined) found.push(`${place}: an array without items`)
    if (Array.isArray(one['enum']) && one['enum'].some((value) => typeof value !== 'string' || value === ''))
      found.push(`${place}: an enum with other values than texts`)
    const names = Object.keys(one['properties'] ?? {})
    for (const name of (one['required'] ?? []) as string[]) if (!names.includes(name)) found.push(`${place}: ${name} is required but not a property`)
    for (const inner of [...Object.values(one['properties'] ?? {}), ...list(one['anyOf']), one['items']])
      if (typeof inner === 'object' && inner !== null) visit(inner as JsonObject, false)
  }
  visit(schema, true)
}

interface Content {
  readonly role: string
  readonly content: Record<string, unknown>[]
}

interface Kinds {
  readonly callId: (block: Record<string, unknown>) => unknown
  readonly resultId: (block: Record<string, unknown>) => unknown
}

/** Claude and Converse: all results of a turn are in the next message of the user, first in it, one for each call. */
function checkTurns(turns: readonly Content[], { callId, resultId }: Kinds, pattern: RegExp, found: string[]): void {
  const seen = new Set<unknown>()
  for (const [at, { role, content }] of turns.entries()) {
    const place = `messages[${at}]`
    const calls = content.map(callId).filter((id) => id !== undefined)
    for (const id of calls) {
      if (!pattern.test(nameOf(id))) found.push(`${place}: id ${nameOf(id)}`)
      if (seen.has(id)) found.push(`${place}: id ${nameOf(id)} twice`)
      seen.add(id)
    }
    if (calls.length > 0) {
      const next = turns[at + 1]
      const given = (next?.content ?? []).map(resultId)
      const first = given.slice(0, calls.length)
      if (next?.role !== 'user' || first.map(nameOf).toSorted(compare).join() !== calls.map(nameOf).toSorted(compare).join())
        found.push(`${place}: calls ${calls.map(nameOf).join()} have the results ${given.map(nameOf).join()}`)
    }
    const results = content.map(resultId).filter((id) => id !== undefined)
    const before = (turns[at - 1]?.content ?? []).map(callId).filter((id) => id !== undefined)
    if (results.length !== (role === 'user' ? before.length : 0)) found.push(`${place}: ${results.length} results for ${before.length} calls`)
  }
}

function blocksOf(content: unknown): Record<string, unknown>[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : list(content)
}

function checkMessages(body: JsonObject, model: string): string[] {
  const found: string[] = []
  const turns = list(body['messages']).map(({ role, content }) => ({ role: nameOf(role), content: blocksOf(content) }))
  checkTurns(
    turns,
    { callId: ({ type, id }) => (type === 'tool_use' ? id : undefined), resultId: ({ type, tool_use_id: id }) => (type === 'tool_result' ? id : undefined) },
    /^[a-zA-Z0-9_-]{1,64}$/,
    found,
  )
  if (turns[0]?.role !== 'user') found.push('the first message is not of the user')
  if (turns.at(-1)?.role === 'assistant' && !/claude-(?:3|\w+-4-5)/.test(model)) found.push('the last message is of the assistant')
  for (const [at, { content }] of turns.entries()) {
    if (content.length === 0) found.push(`messages[${at}] has no content`)
    for (const block of content) {
      if (block['type'] === 'text' && isBlank(block['text'])) found.push(`messages[${at}] has blank text`)
      if (block['type'] === 'thinking' && (block['signature'] === '' || isBlank(block['signature'])))
        found.push(`messages[${at}] has thinking without signature`)
      if (block['type'] === 'tool_use' && (typeof block['input'] !== 'object' || block['input'] === null || Array.isArray(block['input'])))
        found.push(`messages[${at}] has an input that is no object`)
    }
    const first = content.findIndex(({ type }) => type === 'tool_use' || type === 'text')
    if (first !== -1 && content.slice(first).some(({ type }) => type === 'thinking' || type === 'redacted_thinking'))
      found.push(`messages[${at}] has thinking behind text or calls`)
  }
  for (const { name, input_schema: schema } of list(body['tools'])) {
    checkName({ name }, /^[a-zA-Z0-9_-]{1,128}$/, 'tools', found)
    for (const keyword of ['oneOf', 'anyOf', 'allOf']) if (keyword in (schema as object)) found.push(`${nameOf(name)}: ${keyword} at the root of the schema`)
  }
  const marks = JSON.stringify(body).split('"cache_control"').length - 1
  if (marks > 4) found.push(`${marks} cache breakpoints`)
  return found
}

function checkConverse(body: JsonObject, model: string): string[] {
  const found: string[] = []
  const turns = list(body['messages']).map(({ role, content }) => ({ role: nameOf(role), content: list(content) }))
  const inner = (block: Record<string, unknown>, key: string): Record<string, unknown> | undefined => block[key] as Record<string, unknown> | undefined
  checkTurns(
    turns,
    { callId: (block) => inner(block, 'toolUse')?.['toolUseId'], resultId: (block) => inner(block, 'toolResult')?.['toolUseId'] },
    /mistral/.test(model) ? /^[a-zA-Z0-9]{9}$/ : /^[a-zA-Z0-9_-]{1,64}$/,
    found,
  )
  if (turns[0]?.role !== 'user') found.push('the first message is not of the user')
  const names = /nova/.test(model) ? /^[a-zA-Z][a-zA-Z0-9_]{0,63}$/ : /^[a-zA-Z][a-zA-Z0-9_-]{0,63}$/
  for (const [at, { role, content }] of turns.entries()) {
    if (turns[at - 1]?.role === role) found.push(`messages[${at}] has the role of the one before`)
    if (content.length === 0) found.push(`messages[${at}] has no content`)
    for (const block of content) {
      if (isBlank(block['text'])) found.push(`messages[${at}] has blank text`)
      const use = inner(block, 'toolUse')
      if (use) checkName(use, names, `messages[${at}]`, found)
      if (use && (typeof use['input'] !== 'object' || use['input'] === null || Array.isArray(use['input'])))
        found.push(`messages[${at}] has an input that is no object`)
      const result = inner(block, 'toolResult')
      if (result && (list(result['content']).length === 0 || list(result['content']).some(({ text }) => isBlank(text))))
        found.push(`messages[${at}] has an empty result`)
      const thought = inner(inner(block, 'reasoningContent') ?? {}, 'reasoningText')
      if (block['reasoningContent'] && !/claude/.test(model)) found.push(`messages[${at}] has reasoning, which only Claude takes back`)
      if (thought && (thought['signature'] === undefined || isBlank(thought['signature']))) found.push(`messages[${at}] has reasoning without signature`)
      if (result?.['status'] !== undefined && !/claude|nova/.test(model)) found.push(`messages[${at}] has a status`)
    }
  }
  const tools = list((body['toolConfig'] as JsonObject | undefined)?.['tools'])
  if (tools.length === 0 && turns.some(({ content }) => content.some((block) => 'toolUse' in block))) found.push('calls without toolConfig')
  for (const tool of tools) {
    const spec = inner(tool, 'toolSpec')
    if (spec === undefined) continue
    checkName(spec, names, 'toolConfig', found)
    const schema = (spec['inputSchema'] as { json: JsonObject }).json
    if (schema['type'] !== 'object') found.push(`${nameOf(spec['name'])}: the schema is no object`)
    const keys = Object.keys(schema)
    if (/nova/.test(model) && keys.some((key) => !['type', 'properties', 'required'].includes(key)))
      found.push(`${nameOf(spec['name'])}: ${keys.join()} at the root of the schema`)
    for (const keyword of ['oneOf', 'anyOf', 'allOf'])
      if (/claude/.test(model) && keyword in schema) found.push(`${nameOf(spec['name'])}: ${keyword} at the root of the schema`)
  }
  return found
}

/** OpenAI: items that the gateway or another provider made are unknown to it. */
function checkResponses(body: JsonObject): string[] {
  const found: string[] = []
  const calls: unknown[] = []
  for (const [at, item] of list(body['input']).entries()) {
    const place = `input[${at}]`
    if (item['type'] === 'function_call') {
      calls.push(item['call_id'])
      checkName(item, /^[a-zA-Z0-9_-]{1,128}$/, place, found)
      if (item['id'] !== undefined && !nameOf(item['id']).startsWith('fc')) found.push(`${place}: the id of an item must begin with fc`)
      if (!/^[^\s]{1,64}$/.test(nameOf(item['call_id']))) found.push(`${place}: call_id ${nameOf(item['call_id'])}`)
    }
    if (item['type'] === 'function_call_output' && !calls.includes(item['call_id'])) found.push(`${place}: a result without call`)
    if (item['type'] === 'reasoning' && (nameOf(item['encrypted_content']).startsWith('signature:') || /^rs_[0-9a-f]{16}$/.test(nameOf(item['id']))))
      found.push(`${place}: reasoning that OpenAI did not write`)
    if (item['type'] === 'message' && item['id'] !== undefined && !nameOf(item['id']).startsWith('msg'))
      found.push(`${place}: the id of an item must begin with msg`)
  }
  for (const [at, tool] of list(body['tools']).entries()) checkName(tool, /^[a-zA-Z0-9_-]{1,128}$/, `tools[${at}]`, found)
  return found
}
