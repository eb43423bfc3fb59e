import { isRawNumber } from '#api/json/index.ts'
import { ProxyError } from '../../../request/exchange/error.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import type { HeaderList } from '../../../http/headers.ts'
import type { FlatMessage } from '../../llm/common/types.ts'
import { Edits } from '../../llm/guards/edits.ts'
import { decodeText } from '../../llm/guards/encoded.ts'
import type { Patterns } from '../../llm/guards/patterns.ts'
import { hasHit, maskTexts } from '../../llm/guards/search.ts'
import { textOf, type GuardText } from '../../llm/guards/texts.ts'
import type { GuardPhase, Subject } from '../../llm/guards/types.ts'
import type { Cooperative } from '../../../runtime/cooperative.ts'
import { isObject, parseJson, type JsonObject } from '../message/json.ts'

/** Members of results that no model reads. */
const NO_OUTPUT: ReadonlySet<string> = new Set(['_meta', 'isError', 'resultType', 'requestState', 'inputRequests', 'task', 'ttlMs', 'cacheScope'])
const MEDIA: ReadonlySet<unknown> = new Set(['image', 'audio'])

type Place = GuardText['parts'][number]['place']
type Part = GuardText['parts'][number]

/** The texts of the arguments of a call, or of its result, as guards read and change them. */
export class ToolSubject implements Subject {
  readonly phase: GuardPhase
  readonly exchange: Exchange
  readonly headers: HeaderList
  #body: JsonObject
  #texts: readonly GuardText[] | undefined

  /** `body`: the params of a call in phase Request, the message with its result or error in phase Response. */
  constructor(phase: GuardPhase, body: JsonObject, exchange: Exchange) {
    this.phase = phase
    this.#body = body
    this.exchange = exchange
    this.headers = exchange.request.headers
  }

  get body(): JsonObject {
    return this.#body
  }

  *texts(): Cooperative<readonly string[]> {
    return (yield* this.#collect()).map(textOf)
  }

  replaceTexts(texts: readonly string[]): void {
    const changed = new Map<GuardText, string>()
    for (const [nth, text] of (this.#texts ?? []).entries()) {
      const replacement = texts[nth]
      if (replacement !== undefined && replacement !== textOf(text)) changed.set(text, replacement)
    }
    this.#replace(changed)
  }

  *messages(): Cooperative<readonly FlatMessage[]> {
    return (yield* this.texts()).map((content) => ({ role: 'tool', content }))
  }

  replaceMessages(messages: readonly FlatMessage[]): void {
    const count = this.#texts?.length ?? 0
    if (messages.length !== count) throw new RangeError(`${messages.length} messages instead of ${count}`)
    this.replaceTexts(messages.map(({ content }) => content))
  }

  *mask(patterns: Patterns): Cooperative<boolean> {
    const masked = yield* maskTexts(yield* this.#collect(), patterns)
    this.#replace(masked)
    return masked.size > 0
  }

  *hasHit(patterns: Patterns): Cooperative<boolean> {
    return yield* hasHit(yield* this.#collect(), patterns)
  }

  #replace(texts: ReadonlyMap<GuardText, string>): void {
    if (texts.size === 0) return
    const edits = new Edits()
    for (const [text, replacement] of texts) {
      checkKind(text, replacement)
      edits.replace(text, replacement)
    }
    this.#body = edits.apply(this.#body)
    this.#texts = undefined
  }

  *#collect(): Cooperative<readonly GuardText[]> {
    return (this.#texts ??= yield* this.phase === 'Request' ? collectInput(this.#body) : collectOutput(this.#body))
  }
}

/** A guard service may return any text: an object or a list must remain one. */
function checkKind({ kind, value }: GuardText, replacement: string): void {
  if (kind !== 'json' || typeof value !== 'object' || value === null || isRawNumber(value)) return
  let changed: unknown
  try {
    changed = parseJson(replacement)
  } catch {
    throw unfit('text that is not JSON')
  }
  if (Array.isArray(changed) !== Array.isArray(value) || isObject(changed) !== isObject(value)) throw unfit('JSON of another type')
}

const unfit = (what: string): ProxyError => new ProxyError('GUARD_FAILED', { cause: new Error(`the guard replaced JSON by ${what}`) })

const at = (parent: Place | undefined, key: string | number): Place => ({ parent, key })

// oxlint-disable-next-line require-yield -- as collectOutput
function* collectInput(params: JsonObject): Cooperative<readonly GuardText[]> {
  return [jsonText(params['arguments'], at(undefined, 'arguments'))]
}

/** The texts of a message with a result or an error, in order. */
function* collectOutput({ result, error }: JsonObject): Cooperative<readonly GuardText[]> {
  if (isObject(error)) {
    const place = at(undefined, 'error')
    const { message, data } = error
    const texts = typeof message === 'string' ? [plainText({ place: at(place, 'message'), text: message })] : []
    return data === undefined || data === null ? texts : [...texts, jsonText(data, at(place, 'data'))]
  }
  const place = at(undefined, 'result')
  if (!isObject(result)) return [jsonText(result, place)]
  const texts: GuardText[] = []
  for (const [key, value] of Object.entries(result)) {
    if (NO_OUTPUT.has(key) || value === undefined || value === null) continue
    const here = at(place, key)
    if (key !== 'content' || !Array.isArray(value)) texts.push(jsonText(value, here))
    else for (const [nth, block] of value.entries()) texts.push(...(yield* textsOfBlock(block, at(here, nth))))
  }
  return texts
}

/** The texts of a block of content. A block of an unknown type is searched entirely. */
function* textsOfBlock(block: unknown, place: Place): Cooperative<readonly GuardText[]> {
  if (!isObject(block)) return [jsonText(block, place)]
  const { type, text, resource } = block
  if (MEDIA.has(type)) return []
  if (type === 'text' && typeof text === 'string') return [plainText({ place: at(place, 'text'), text })]
  if (type === 'resource_link')
    return ['name', 'title', 'description'].flatMap((key) => {
      const value = block[key]
      return typeof value === 'string' ? [plainText({ place: at(place, key), text: value })] : []
    })
  if (type !== 'resource' || !isObject(resource)) return [jsonText(block, place)]
  const inner = at(place, 'resource')
  const texts: GuardText[] = []
  if (typeof resource['text'] === 'string') texts.push(plainText({ place: at(inner, 'text'), text: resource['text'] }))
  if (typeof resource['blob'] === 'string') {
    const file = yield* decodeText(resource['blob'])
    if (file !== undefined) texts.push(plainText({ place: at(inner, 'blob'), ...file }))
  }
  return texts
}

/** A text that is searched on its own. */
const plainText = (...parts: readonly Part[]): GuardText => ({ role: 'tool', kind: 'text', joiner: '', parts, message: -1, isMessage: false })

const jsonText = (value: unknown, place: Place): GuardText => ({
  role: 'tool',
  kind: 'json',
  joiner: '',
  parts: [
    {
      place,
      // Printed only where the text is needed.
      get text(): string {
        return typeof value === 'string' ? value : JSON.stringify(value)
      },
    },
  ],
  value,
  message: -1,
  isMessage: false,
})
