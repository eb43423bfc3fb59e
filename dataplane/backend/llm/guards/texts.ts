import { isObject, isRawNumber, parseJson, printJson } from '../common/json.ts'
import { hasText, isToolInput, NO_TEXTS, SCHEMAS } from '../common/text-members.ts'
import { decodeText, isEncodedFile } from './encoded.ts'
import type { ClientFormat, JsonObject } from '../common/types.ts'
import type { Cooperative } from '../../../runtime/cooperative.ts'

/** A place in a body. */
interface Place {
  readonly parent: Place | undefined
  readonly key: string | number
}

interface TextPart {
  readonly place: Place
  readonly text: string
  /** The form in which the body holds a changed text; default: the text. */
  readonly encode?: (text: string) => string
}

/** A text of a request or response: adjacent text parts of one message, another string, or the JSON input of a tool. */
export interface GuardText {
  readonly role: string
  /** `json` texts are masked value by value. */
  readonly kind: 'text' | 'json'
  /** Between the parts, as guard services receive them. */
  readonly joiner: string
  readonly parts: readonly TextPart[]
  /** The value of a `json` text. */
  readonly value?: unknown
  /** The number of the message that it belongs to; texts outside of messages have -1. */
  readonly message: number
  /** It is in the plain messages of the format (`flattenRequest`, `flattenResponse`). */
  readonly isMessage: boolean
}

/** Settings of a request that no model reads. */
const SETTINGS = new Set(
  (
    'model,user,metadata,safety_identifier,prompt_cache_key,prompt_cache_retention,previous_response_id,conversation,service_tier,store,include,' +
    'truncation,container,stop,stop_sequences,stop_token_ids,reasoning_effort,verbosity,modalities,audio,stream,stream_options,logit_bias,' +
    'anthropic_version,anthropic_beta,betas,background,tool_choice,parallel_tool_calls,thinking,safetySettings,safety_settings,labels,cachedContent,cached_content'
  ).split(','),
)
/** Values to visit before other events may be processed. */
const VALUES_PER_SLICE = 256

interface Visit {
  readonly value: unknown
  readonly place: Place
  readonly role: string
  readonly message: number
  /** The value is the content of a message. */
  readonly isContent?: boolean
  /** The value is a file in base64 or a data URL. */
  readonly isEncoded?: boolean
  /** The texts of the object were found with its neighbours. */
  readonly isRead?: boolean
}

/** Collects all texts of a request that reach the model, in order (llm.md §13.1). */
export function collectRequestTexts(body: JsonObject, format: ClientFormat): Cooperative<GuardText[]> {
  const visits = Object.keys(body)
    .filter((key) => !SETTINGS.has(key))
    // System prompts come first, as in the plain messages.
    .sort((a, b) => Number(isSystemMember(b)) - Number(isSystemMember(a)))
    .map((key): Visit => {
      const value = body[key]
      const isInput = (key === 'input' && typeof value === 'string') || (format === 'rerank' && (key === 'query' || key === 'documents'))
      return { value, place: { parent: undefined, key }, role: isSystemMember(key) ? 'system' : 'user', message: -1, isContent: isSystemMember(key) || isInput }
    })
  return new Collector(format).collect(visits)
}

const SYSTEM = new Set(['system', 'instructions', 'systemInstruction', 'system_instruction'])
const isSystemMember = (key: string): boolean => SYSTEM.has(key)

/** The member with what the model wrote, a list. */
const CONTENTS: Partial<Readonly<Record<ClientFormat, string>>> = { completions: 'choices', messages: 'content', responses: 'output', gemini: 'candidates' }

/** Collects all texts that the model wrote, in order. */
export function collectResponseTexts(body: JsonObject, format: ClientFormat): Cooperative<GuardText[]> {
  const visit = (value: unknown, place: Place, isContent = false): Visit => ({ value, place, role: 'assistant', message: -1, isContent })
  const at = (parent: Place | undefined, key: string | number): Place => ({ parent, key })
  const member = CONTENTS[format] ?? 'output'
  const contents = body[member]
  const inner = format === 'completions' ? 'message' : format === 'gemini' ? 'content' : undefined
  const visits = !Array.isArray(contents)
    ? // JSON of another shape, which is forwarded if no attempt is left.
      Object.keys(body)
        .filter((key) => (typeof body[key] === 'string' ? hasText(key, body) : !NO_TEXTS.has(key)))
        .map((key) => visit(body[key], at(undefined, key)))
    : inner !== undefined
      ? contents.map((choice: unknown, nth) => visit(isObject(choice) ? choice[inner] : undefined, at(at(at(undefined, member), nth), inner)))
      : [visit(contents, at(undefined, member), format === 'messages')]
  return new Collector(format).collect(visits)
}

/** The text, with its parts joined. */
export function textOf({ parts, joiner }: GuardText): string {
  const [first] = parts
  return first !== undefined && parts.length === 1 ? first.text : parts.map(({ text }) => text).join(joiner)
}

class Collector {
  readonly #format: ClientFormat
  readonly #texts: GuardText[] = []
  readonly #open: Visit[] = []
  #messages = 0

  constructor(format: ClientFormat) {
    this.#format = format
  }

  /** Visits the values depth first, without recursion: bodies may be nested deeply. */
  *collect(visits: readonly Visit[]): Cooperative<GuardText[]> {
    this.#open.push(...visits.toReversed())
    let visited = 0
    for (let visit = this.#open.pop(); visit !== undefined; visit = this.#open.pop()) {
      const { value } = visit
      if (typeof value === 'string' && visit.isEncoded === true) {
        const file = yield* decodeText(value)
        if (file !== undefined) this.#addText(visit, [{ place: visit.place, ...file }])
      } else if (typeof value === 'string') this.#addText(visit, [{ place: visit.place, text: value }])
      else if (Array.isArray(value)) yield* this.#visitList(value as unknown[], visit)
      else if (isObject(value)) this.#visitObject(value, visit)
      if (++visited % VALUES_PER_SLICE === 0) yield
    }
    return this.#texts
  }

  #addText({ role, message, isContent = false }: Visit, parts: readonly TextPart[]): void {
    if (parts.every(({ text }) => text === '')) return
    const joiner = this.#format === 'responses' || role === 'system' || role === 'developer' ? '\n' : ' '
    this.#texts.push({ role, kind: 'text', joiner, parts, message, isMessage: isContent })
  }

  #addJson({ role, message }: Visit, value: unknown, place: Place): void {
    if (value === undefined || value === null || value === '') return
    // Printed only where the text is needed.
    const part = {
      place,
      get text(): string {
        return typeof value === 'string' ? value : printJson(value)
      },
    }
    this.#texts.push({ role, kind: 'json', joiner: '', parts: [part], value, message, isMessage: false })
  }

  /** Adjacent strings and text parts are one text. */
  *#visitList(items: readonly unknown[], visit: Visit): Cooperative<void> {
    const inner: Visit[] = []
    let parts: { place: Place; text: string }[] = []
    for (let nth = 0; nth < items.length; nth++) {
      const item = items[nth]
      const place: Place = { parent: visit.place, key: nth }
      const key = isObject(item) ? textMember(item) : undefined
      if (typeof item === 'string') parts.push({ place, text: item })
      else if (key !== undefined && isObject(item)) {
        parts.push({ place: { parent: place, key }, text: item[key] as string })
        inner.push({ ...visit, value: item, place, isContent: false, isRead: true })
      } else {
        if (parts.length > 0) this.#addText(visit, parts)
        parts = []
        if (typeof item === 'object') inner.push({ ...visit, value: item, place, isContent: false })
      }
      if ((nth + 1) % VALUES_PER_SLICE === 0) yield
    }
    if (parts.length > 0) this.#addText(visit, parts)
    for (let nth = inner.length - 1; nth >= 0; nth--) if (inner[nth] !== undefined) this.#open.push(inner[nth] as Visit)
  }

  #visitObject(object: JsonObject, visit: Visit): void {
    const { place } = visit
    const { type } = object
    const isResult = type === 'tool_result' || isFunctionResponse(place.key) || (typeof type === 'string' && type.endsWith('_call_output'))
    const given = object['role']
    const isMessage = typeof given === 'string' || type === 'message' || Array.isArray(object['parts'])
    const role = isResult ? 'tool' : given === 'model' ? 'assistant' : typeof given === 'string' ? given : visit.role
    const message = isMessage || isResult ? this.#messages++ : visit.message
    const inner: Visit[] = []
    for (const key of Object.keys(object)) {
      const value = object[key]
      const here: Place = { parent: place, key }
      const next: Visit = { value, place: here, role, message, isContent: isFlat(key, { isMessage: isMessage || isResponse(visit), isResult }) }
      if (visit.isRead === true && key === textMember(object)) continue
      if (isToolInput(key, object)) this.#addJson(next, value, here)
      else if (SCHEMAS.has(key)) {
        if (typeof value === 'object') this.#addJson(next, value, here)
      } else if (typeof value === 'string' && isEncodedFile(key, object)) inner.push({ ...next, isEncoded: true })
      else if (typeof value === 'string' ? hasText(key, object) : typeof value === 'object' && !NO_TEXTS.has(key)) inner.push(next)
    }
    for (let nth = inner.length - 1; nth >= 0; nth--) if (inner[nth] !== undefined) this.#open.push(inner[nth] as Visit)
  }
}

const isFunctionResponse = (key: string | number): boolean => key === 'functionResponse' || key === 'function_response'

/** A message of a response has no parent with a role. */
const isResponse = ({ role, place }: Visit): boolean => role === 'assistant' && place.key === 'message'

function isFlat(key: string, { isMessage, isResult }: { isMessage: boolean; isResult: boolean }): boolean {
  return (key === 'parts' && isMessage && !isResult) || (key === 'content' && (isMessage || isResult)) || (key === 'output' && isResult)
}

/** The member with the text of a text part. */
function textMember(part: JsonObject): string | undefined {
  if (typeof part['text'] === 'string') return 'text'
  return typeof part['refusal'] === 'string' ? 'refusal' : undefined
}

/** The strings, numbers and member names in a `json` text. */
export function* readLeaves({ value }: GuardText): Generator<string> {
  const open: unknown[] = [typeof value === 'string' ? parseLeniently(value) : value]
  while (open.length > 0) {
    const next = open.pop()
    if (typeof next === 'string') yield next
    else if (typeof next === 'number') yield String(next)
    else if (isRawNumber(next)) yield next.rawJSON
    else if (Array.isArray(next)) for (const item of next as unknown[]) open.push(item)
    else if (isObject(next))
      for (const key of Object.keys(next)) {
        yield key
        open.push(next[key])
      }
  }
}

/** The value of JSON text; the text itself if it is not JSON. */
function parseLeniently(text: string): unknown {
  try {
    return parseJson(text)
  } catch {
    return text
  }
}
