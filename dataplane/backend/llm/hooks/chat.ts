import type { LlmChat, LlmMessage, LlmPart, LlmTool } from '#api/plugin/index.ts'
import { inside, listOf, numberOf, textOf, without } from '../common/read.ts'
import type { ClientFormat, JsonObject } from '../common/types.ts'
import { isObject } from '../common/json.ts'
import { collectRequestTexts, type GuardText } from '../guards/texts.ts'
import type { Cooperative } from '../../../runtime/cooperative.ts'
import { listIn, objectIn, partOf, pathOf, TextChanges } from './parts.ts'

/** Where a format has its conversation. */
interface Layout {
  readonly type: LlmChat['type']
  /** Member with the messages. */
  readonly list: 'messages' | 'input' | 'contents' | 'requests'
  /** Member with the system prompt, if it is no message. */
  readonly system?: 'system' | 'instructions' | 'systemInstruction'
  /** Members with the limit of tokens; the first is written. */
  readonly maxTokens: readonly string[]
  /** Member with the limit of tokens and the temperature, if they are not at the top level. */
  readonly config?: 'generationConfig'
  /** Roles that a new message may have. */
  readonly roles: readonly string[]
}

const all = ['system', 'developer', 'user', 'assistant']
const layouts: Readonly<Record<ClientFormat, Layout>> = {
  completions: { type: 'chat', list: 'messages', maxTokens: ['max_completion_tokens', 'max_tokens'], roles: all },
  messages: { type: 'chat', list: 'messages', system: 'system', maxTokens: ['max_tokens'], roles: all },
  responses: { type: 'chat', list: 'input', system: 'instructions', maxTokens: ['max_output_tokens'], roles: all },
  embeddings: { type: 'embeddings', list: 'input', maxTokens: [], roles: ['user'] },
  tokenCount: { type: 'count', list: 'messages', system: 'system', maxTokens: [], roles: all },
  gemini: {
    type: 'chat',
    list: 'contents',
    system: 'systemInstruction',
    maxTokens: ['maxOutputTokens'],
    config: 'generationConfig',
    roles: ['user', 'assistant'],
  },
  geminiCount: { type: 'count', list: 'contents', system: 'systemInstruction', maxTokens: [], roles: ['user', 'assistant'] },
  geminiEmbeddings: { type: 'embeddings', list: 'requests', maxTokens: [], roles: [] },
  // They have no messages: all texts are in `others`.
  rerank: { type: 'rerank', list: 'messages', maxTokens: [], roles: [] },
  moderations: { type: 'moderation', list: 'messages', maxTokens: [], roles: [] },
}

/** `ref` of the system prompt where it is no message; that of a message is its index, from 1. */
const SYSTEM_REF = 0

/** A request as hooks see it, and what they change in it. */
export interface ChatView {
  readonly chat: LlmChat
  /** The body with the changes of a hook; the body itself if there are none. Throws an Error if they cannot be applied. */
  apply(output: unknown): JsonObject
}

/** Reads a request. */
export function* viewChat(body: JsonObject, format: ClientFormat): Cooperative<ChatView> {
  const layout = layouts[format]
  const texts = format === 'embeddings' ? textsOfInputs(body) : yield* collectRequestTexts(body, format)
  const messages: (LlmMessage & { readonly ref: number })[] = []
  const byRef = new Map<number, LlmPart[]>()
  const add = (ref: number, role: string): void => {
    const parts: LlmPart[] = []
    byRef.set(ref, parts)
    messages.push({ ref, role, parts })
  }
  if (layout.system !== undefined && isGiven(body[layout.system])) add(SYSTEM_REF, 'system')
  for (const [nth, item] of itemsOf(body, layout).entries()) add(nth + 1, roleOf(item))
  const others: LlmPart[] = []
  for (const [ref, text] of texts.entries()) {
    const [member, nth] = pathOf(text)
    const owner = member === layout.list ? (typeof nth === 'number' ? nth + 1 : 1) : member === layout.system ? SYSTEM_REF : -1
    ;(byRef.get(owner) ?? others).push(partOf(text, ref, body))
    if (ref % 256 === 255) yield
  }
  const tools = listOf(body['tools']).map((tool, ref): LlmTool => ({ ref, name: nameOf(tool) }))
  const settings = layout.config === undefined ? body : inside(body[layout.config])
  const maxTokens = layout.maxTokens.map((member) => numberOf(settings[member])).find((value) => value !== undefined)
  const temperature = numberOf(settings['temperature'])
  const chat: LlmChat = {
    type: layout.type,
    stream: body['stream'] === true,
    model: textOf(body['model']) ?? '',
    messages,
    others,
    tools,
    ...(maxTokens !== undefined && { maxTokens }),
    ...(temperature !== undefined && { temperature }),
  }
  return { chat, apply: (output) => applyChat(output, { body, layout, chat, texts }) }
}

interface Source {
  readonly body: JsonObject
  readonly layout: Layout
  readonly chat: LlmChat
  readonly texts: readonly GuardText[]
}

function applyChat(output: unknown, { body, layout, chat, texts }: Source): JsonObject {
  const { model, messages = chat.messages, others = chat.others, tools = chat.tools, ...rest } = objectIn(output, 'the chat')
  const changes = new TextChanges(texts)
  changes.read(listIn(others, 'others'), refsOf(chat.others), 'others')
  const order = readOrder(listIn(messages, 'messages'), chat, layout, changes)
  const moved = reorder(changes.apply(body), body, order, layout, chat)
  const kept = keepTools(moved, listIn(tools, 'tools'), chat.tools)
  const named = setModel(kept, model, chat.model)
  const { config } = layout
  const settings = config === undefined ? named : inside(named[config])
  const limited = setNumber(settings, rest['maxTokens'], chat.maxTokens, 'maxTokens', layout.maxTokens)
  const set = setNumber(limited, rest['temperature'], chat.temperature, 'temperature', layout.type === 'chat' ? ['temperature'] : [])
  return config === undefined ? set : set === settings ? named : { ...named, [config]: set }
}

const refsOf = (parts: readonly LlmPart[]): ReadonlySet<number> => new Set(parts.map(({ ref = -1 }) => ref))

/** A message of the new conversation: one of the request by its ref, or a new one. */
type Entry = number | { readonly role: string; readonly text: string }

function readOrder(messages: readonly unknown[], chat: LlmChat, { roles }: Layout, changes: TextChanges): Entry[] {
  const known = new Map(chat.messages.map((message) => [message.ref, message]))
  const seen = new Set<number>()
  return messages.map((message, nth): Entry => {
    const at = `messages[${nth}]`
    const { ref, role, parts } = objectIn(message, at)
    if (ref === undefined) return { role: roleIn(role, roles, at), text: newText(listIn(parts, `${at}.parts`), at) }
    const before = typeof ref === 'number' ? known.get(ref) : undefined
    if (typeof ref !== 'number' || before === undefined) throw new TypeError(`${at} has a ref of no message; a new message has none`)
    if (seen.has(ref)) throw new TypeError(`${at} has the ref of another message`)
    if (role !== before.role) throw new TypeError(`${at}.role cannot be changed`)
    seen.add(ref)
    changes.read(listIn(parts, `${at}.parts`), refsOf(before.parts), `${at}.parts`)
    return ref
  })
}

function roleIn(role: unknown, roles: readonly string[], at: string): string {
  if (typeof role !== 'string' || !roles.includes(role)) throw new TypeError(`${at}.role of a new message is none of ${roles.join(', ')}`)
  return role
}

function newText(parts: readonly unknown[], at: string): string {
  return parts
    .map((part, nth) => {
      const { ref, type, text } = objectIn(part, `${at}.parts[${nth}]`)
      if (ref !== undefined || type !== 'text' || typeof text !== 'string')
        throw new TypeError(`${at}.parts[${nth}] of a new message is not { type: 'text', text }`)
      return text
    })
    .join('\n')
}

/** Puts the messages into a new order. `edited` has changed texts. */
function reorder(edited: JsonObject, body: JsonObject, order: readonly Entry[], layout: Layout, chat: LlmChat): JsonObject {
  if (order.length === chat.messages.length && order.every((entry, nth) => entry === chat.messages[nth]?.ref)) return edited
  const items = itemsOf(edited, layout)
  if (items.length !== itemsOf(body, layout).length) throw new TypeError('messages cannot be moved and changed at once in this request')
  const { list, system, type } = layout
  const isSystem = (entry: Entry): entry is { role: string; text: string } =>
    system === 'system' && typeof entry === 'object' && (entry.role === 'system' || entry.role === 'developer')
  const content = order
    .filter((entry) => entry !== SYSTEM_REF || system === undefined)
    .filter((entry) => !isSystem(entry))
    .map((entry): unknown => {
      if (typeof entry === 'number')
        return list === 'input' && type === 'chat' && typeof items[entry - 1] === 'string' ? { role: 'user', content: items[entry - 1] } : items[entry - 1]
      if (type === 'embeddings') return entry.text
      if (list === 'contents') return { role: entry.role === 'assistant' ? 'model' : 'user', parts: [{ text: entry.text }] }
      return { ...(list === 'input' && { type: 'message' }), role: entry.role, content: entry.text }
    })
  const listed = { ...edited, [list]: content }
  if (system === undefined) return listed
  const place = order.indexOf(SYSTEM_REF)
  const kept = place === -1 ? without(listed, system) : listed
  const texts = order.flatMap((entry, nth) => (isSystem(entry) ? [{ text: entry.text, isBefore: nth < place }] : []))
  return texts.length === 0 ? kept : { ...kept, [system]: joinSystem(kept[system], texts) }
}

function joinSystem(system: unknown, texts: readonly { readonly text: string; readonly isBefore: boolean }[]): unknown {
  const before = texts.filter(({ isBefore }) => isBefore).map(({ text }) => text)
  const after = texts.filter(({ isBefore }) => !isBefore).map(({ text }) => text)
  if (!Array.isArray(system)) return [...before, ...(typeof system === 'string' ? [system] : []), ...after].join('\n')
  const block = (text: string): JsonObject => ({ type: 'text', text })
  return [...before.map(block), ...(system as unknown[]), ...after.map(block)]
}

function keepTools(body: JsonObject, tools: readonly unknown[], before: readonly LlmTool[]): JsonObject {
  const refs = new Set(
    tools.map((tool, nth) => {
      const { ref } = objectIn(tool, `tools[${nth}]`)
      if (typeof ref !== 'number' || before[ref] === undefined) throw new TypeError(`tools[${nth}] has no ref of a tool; tools cannot be added`)
      return ref
    }),
  )
  if (refs.size === before.length) return body
  const kept = listOf(body['tools']).filter((_, nth) => refs.has(nth))
  return kept.length === 0 ? without(body, 'tools', 'tool_choice', 'parallel_tool_calls') : { ...body, tools: kept }
}

function setModel(body: JsonObject, model: unknown, before: string): JsonObject {
  if (model === undefined || model === before) return body
  if (typeof model !== 'string' || model === '') throw new TypeError('model is no name')
  return { ...body, model }
}

function setNumber(body: JsonObject, value: unknown, before: unknown, name: string, members: readonly string[]): JsonObject {
  if (value === undefined || value === before) return body
  const removed = without(body, ...members)
  if (value === null) return removed
  if (typeof value !== 'number' || !Number.isFinite(value) || value < 0) throw new TypeError(`${name} is no number from 0`)
  const member = members.find((one) => body[one] !== undefined) ?? members.at(-1)
  return member === undefined ? body : { ...removed, [member]: value }
}

/** The messages of a body; a single string is one. */
function itemsOf(body: JsonObject, { list, type }: Layout): readonly unknown[] {
  const items = body[list]
  if (typeof items === 'string') return [items]
  return type === 'embeddings' && !isTexts(items) ? [] : listOf(items)
}

/** Inputs of embeddings may be lists of tokens too. */
const isTexts = (items: unknown): items is readonly string[] => Array.isArray(items) && items.every((item) => typeof item === 'string')

/** Each input of embeddings is a text of its own. */
function textsOfInputs(body: JsonObject): readonly GuardText[] {
  const { input } = body
  const plain = (text: string, place: GuardText['parts'][number]['place']): GuardText => {
    return { role: 'user', kind: 'text', joiner: '', parts: [{ place, text }], message: -1, isMessage: true }
  }
  const root = { parent: undefined, key: 'input' }
  if (typeof input === 'string') return [plain(input, root)]
  return isTexts(input) ? input.map((text, key) => plain(text, { parent: root, key })) : []
}

const isGiven = (value: unknown): boolean => value !== undefined && value !== null

function roleOf(item: unknown): string {
  if (!isObject(item)) return 'user'
  const { role, type } = item
  if (typeof role === 'string') return role === 'function' ? 'tool' : role === 'model' ? 'assistant' : role
  if (typeof type !== 'string' || type === 'message') return 'user'
  return type.endsWith('_output') ? 'tool' : 'assistant'
}

function nameOf(tool: unknown): string {
  return textOf(inside(inside(tool)['function'])['name']) ?? textOf(inside(tool)['name']) ?? ''
}
