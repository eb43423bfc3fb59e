import { isRawNumber, isObject } from '../common/json.ts'
import type { JsonObject } from '../common/types.ts'
import { tokensIn } from './estimate.ts'

// The client chose every member of the body. So each string is counted by itself: its place (the names of the members around it) decides whether it can
// be a medium, and other members can only raise its tokens. An added member never lowers the estimate.

/** Tokens of an image: the most that a provider counts for one, except OpenAI at full detail; and the least, those of OpenAI at low detail. */
const IMAGE_TOKENS = 1600
const LOW_IMAGE_TOKENS = 85
/** Shorter texts in the place of a URL are URLs and ids. */
const MIN_DATA_LENGTH = 2048

/** Kinds of media, as bits: the members around a string may name several, of which the most expensive counts. */
const IMAGE = 1
const DOCUMENT = 2
const AUDIO = 4
const TEXT = 8
/** Bits of the place of a string: in a member for media, for data, for a URL or id, in the definition of a tool or the arguments of a call. */
const CONTAINER = 16
const DATA = 32
const REFERENCE = 64
const SCHEMA = 128

/** Tokens of as many bytes of a kind, and of a medium of it whose size is not known: a document of three pages, a minute of audio. */
const rates: readonly (readonly [kind: number, tokensOf: (bytes: number) => number, byReference: number])[] = [
  [IMAGE, (bytes) => Math.min(IMAGE_TOKENS, Math.max(LOW_IMAGE_TOKENS, Math.ceil(bytes / 100))), IMAGE_TOKENS],
  [DOCUMENT, (bytes) => Math.ceil(bytes / 40), 6000],
  [AUDIO, (bytes) => Math.ceil(bytes / 500), 2000],
  // Texts are not counted as data.
  [TEXT, tokensIn, IMAGE_TOKENS],
]

/** Members by their names in lower case without `_`, because servers differ in the spelling that they accept. */
const places: ReadonlyMap<string, number> = new Map([
  ...each(['image', 'images', 'inputimage'], CONTAINER | IMAGE | DATA),
  ...each(['imageurl'], CONTAINER | IMAGE | REFERENCE),
  ...each(['audio', 'inputaudio', 'video', 'inputvideo'], CONTAINER | AUDIO | DATA),
  ...each(['audiourl', 'videourl'], CONTAINER | AUDIO | REFERENCE),
  ...each(['document', 'file', 'inputfile'], CONTAINER | DOCUMENT),
  ...each(['documenturl', 'fileurl'], CONTAINER | DOCUMENT | REFERENCE),
  ...each(['source', 'inlinedata'], CONTAINER),
  // An object of Gemini, and data of OpenAI.
  ...each(['filedata'], CONTAINER | DATA),
  ...each(['data', 'bytes'], DATA),
  ...each(['url', 'uri', 'fileuri', 'fileid'], REFERENCE),
  ...each(
    ['tools', 'functions', 'toolconfig', 'responseformat', 'outputconfig', 'textformat', 'schema', 'jsonschema', 'responseschema', 'responsejsonschema'],
    SCHEMA,
  ),
])
/** Members with the arguments and results of calls, if they are objects: names in them are text that the model reads. */
const calls: ReadonlySet<string> = new Set(['input', 'args', 'arguments', 'response', 'json'])
/** Kinds by the `type` of a part. */
const types: ReadonlyMap<unknown, number> = new Map<unknown, number>([
  ...each(['image', 'input_image', 'image_url'], IMAGE),
  ...each(['audio', 'input_audio', 'audio_url', 'video', 'input_video', 'video_url'], AUDIO),
  ...each(['document', 'input_file'], DOCUMENT),
  ...each(['text'], TEXT),
])
/** Members with texts that are no part of the prompt in a known format. */
const skipped: ReadonlySet<string> = new Set([
  'model', 'role', 'type', 'id', 'call_id', 'tool_call_id', 'tool_use_id', 'toolUseId', 'media_type', 'mimeType', 'mime_type', 'signature',
  'encrypted_content', 'metadata', 'user', 'service_tier', 'safety_identifier', 'prompt_cache_key', 'cache_control', 'stream_options', 'detail', 'thoughtSignature',
]) // prettier-ignore
/** Members of a medium that are no part of the prompt. */
const skippedOfMedia: ReadonlySet<string> = new Set(['format', 'mime', 'contentType', 'content_type'])

function each(names: readonly string[], bits: number): [string, number][] {
  return names.map((name) => [name, bits])
}

/** The name as servers that ignore the spelling read it. */
export const foldName = (name: string): string => name.replaceAll(/[_-]/g, '').toLowerCase()

/**
 * Estimates the tokens of a prompt: texts and definitions of tools by their length, images, documents and audio by their size. If the format of the body
 * is not known, only short values are skipped.
 */
export function promptTokensOf(body: JsonObject, isFormatKnown = true): number {
  let bytes = 0
  let media = 0
  const waiting: { readonly value: unknown; readonly place: number }[] = [{ value: body, place: 0 }]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { value, place } = next
    const isSchema = (place & SCHEMA) !== 0
    if (typeof value === 'string') {
      const tokens = isSchema ? undefined : mediaTokens(value, place)
      if (tokens === undefined) bytes += Buffer.byteLength(value)
      else media += tokens
    } else if (Array.isArray(value))
      for (const item of value as unknown[])
        // A prompt may be a list of tokens.
        if (typeof item === 'number' || isRawNumber(item)) media += 1
        else waiting.push({ value: item, place })
    else if (isObject(value)) {
      const inner = place | (isSchema ? 0 : kindsOf(value))
      for (const key of Object.keys(value)) {
        const member = value[key]
        if (isSchema) bytes += Buffer.byteLength(key)
        else if ((skipped.has(key) || ((inner & CONTAINER) !== 0 && skippedOfMedia.has(key))) && (isFormatKnown || isShort(member))) continue

        const name = foldName(key)
        const isCall = calls.has(name) && isObject(member)
        waiting.push({ value: member, place: inner | (places.get(name) ?? 0) | (isCall ? SCHEMA : 0) })
      }
    } else if (isSchema) bytes += 4
  }
  return tokensIn(bytes) + media
}

/** A name or an id. */
const isShort = (value: unknown): boolean => typeof value === 'string' && value.length <= 64

/** The kinds of media that the members of an object name. */
function kindsOf(part: JsonObject): number {
  const type = part['type']
  let kinds = types.get(typeof type === 'string' ? type.toLowerCase() : type) ?? 0
  for (const name of ['media_type', 'mimeType', 'mime_type']) kinds |= kindOf(part[name])
  return kinds
}

function kindOf(mime: unknown): number {
  if (typeof mime !== 'string' || mime === '') return 0
  if (/^image\//i.test(mime)) return IMAGE
  if (/^(?:audio|video)\//i.test(mime)) return AUDIO
  return /^text\/|[/+](?:json|xml|yaml|csv|javascript)\b/i.test(mime) ? TEXT | DOCUMENT : DOCUMENT
}

/** Tokens of a string at the place of a medium; undefined: it is text. */
function mediaTokens(text: string, place: number): number | undefined {
  if ((place & (DATA | REFERENCE)) === 0 || (place & (CONTAINER | IMAGE | DOCUMENT | AUDIO)) === 0) return undefined
  const [prefix = '', mime = ''] = /^data:([^,;]{0,200})[^,]{0,200};base64,/i.exec(text.slice(0, 512)) ?? []
  const length = Buffer.byteLength(text)
  if (prefix === '' && (place & REFERENCE) !== 0 && (length < MIN_DATA_LENGTH || !isBase64(text, length)))
    return Math.max(tokensIn(length), greatest(place, ([, , byReference]) => byReference) ?? IMAGE_TOKENS)
  if (!isBase64(text, length)) return undefined
  const kinds = place | kindOf(mime)
  if ((kinds & TEXT) !== 0 || hasText(text.slice(prefix.length))) return undefined
  // Base64 has four characters for three bytes.
  const bytes = ((length - prefix.length) * 3) / 4
  return greatest(kinds, ([, tokensOf]) => tokensOf(bytes)) ?? Math.min(...rates.map(([, tokensOf]) => tokensOf(bytes)))
}

/** Estimates the tokens of a file of a form, or of a body that is one. Text counts as text, whatever its type says. */
export function fileTokensOf(bytes: Buffer, mime: string): number {
  return isText(bytes.subarray(0, 192)) ? tokensIn(bytes.length) : binaryTokensOf(bytes.length, mime)
}

/** Estimates the tokens of as many bytes of a file that is not read. */
export function binaryTokensOf(length: number, mime: string): number {
  const kinds = kindOf(mime)
  return ((kinds & TEXT) === 0 ? greatest(kinds, ([, tokensOf]) => tokensOf(length)) : undefined) ?? tokensIn(length)
}

/** A cheap test, as data may have many megabytes: texts have spaces, or characters that are not ASCII. */
const isBase64 = (text: string, byteLength: number): boolean => byteLength === text.length && !text.includes(' ')

/** Whether base64 is that of a text. */
const hasText = (base64: string): boolean => isText(Buffer.from(base64.slice(0, 256), 'base64'))

/** Whether the first bytes are those of a text. PDF starts as one. */
function isText(start: Buffer): boolean {
  return start.length > 0 && start.toString('latin1', 0, 5) !== '%PDF-' && start.every((byte) => byte >= 0x20 || (byte >= 9 && byte <= 13))
}

function greatest(kinds: number, tokensOf: (rate: (typeof rates)[number]) => number): number | undefined {
  let found: number | undefined
  for (const rate of rates) if ((kinds & rate[0]) !== 0) found = Math.max(found ?? 0, tokensOf(rate))
  return found
}
