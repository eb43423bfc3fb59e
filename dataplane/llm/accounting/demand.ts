import type { LlmDemand } from '../../exchange/token-budgets.ts'
import { isObject, isRawNumber } from '../common/json.ts'
import { inside } from '../common/read.ts'
import type { JsonObject } from '../common/types.ts'
import { priceOf, type Price } from '../pricing/price.ts'
import { tokensIn } from './estimate.ts'

/** Tokens of an image: the most that a provider counts for one, except OpenAI at full detail; with `detail: low` those of OpenAI. */
const IMAGE_TOKENS = 1600
const LOW_IMAGE_TOKENS = 85
/** Bytes of a compressed image, document, and of audio or video in one token. */
const BYTES_PER_TOKEN = { image: 100, document: 40, audio: 500 } as const
/** Tokens of a medium whose size is not known, because the request has its URL or id: a document of three pages, a minute of audio. */
const TOKENS_BY_REFERENCE = { image: IMAGE_TOKENS, document: 6000, audio: 2000 } as const

/** Shorter texts are URLs and ids. */
const MIN_DATA_LENGTH = 2048

type Medium = keyof typeof BYTES_PER_TOKEN

/** Members with texts that are no part of the prompt. */
const skipped: ReadonlySet<string> = new Set([
  'model', 'role', 'type', 'id', 'call_id', 'tool_call_id', 'tool_use_id', 'toolUseId', 'media_type', 'mimeType', 'mime_type', 'signature',
  'encrypted_content', 'metadata', 'user', 'service_tier', 'safety_identifier', 'prompt_cache_key', 'cache_control', 'stream_options',
]) // prettier-ignore
/** Members with definitions of tools and schemas, whose names count too. */
const schemas: ReadonlySet<string> = new Set(['tools', 'functions', 'toolConfig', 'response_format', 'output_config', 'text_format', 'responseSchema'])

const limits = [
  'max_completion_tokens',
  'max_tokens',
  'max_output_tokens',
  'max_tokens_to_sample',
  'max_new_tokens',
  'max_gen_len',
  'maxTokens',
  'maxOutputTokens',
  'maxTokenCount',
]
const counts = ['n', 'best_of', 'candidateCount', 'candidate_count', 'num_generations']
/** Members with parameters of their own: Gemini, Bedrock, Titan. */
const nested = ['generationConfig', 'generation_config', 'inferenceConfig', 'textGenerationConfig']

/** What a request in any format may use (traffic.md §8.14). The client chose all of it. */
export function demandOf(body: JsonObject, model: string | undefined, price: Price | undefined): LlmDemand {
  const places = [body, ...nested.map((name) => inside(body[name]))]
  return {
    model,
    promptTokens: promptTokensOf(body),
    maxTokens: greatest(places, limits),
    answers: Math.max(1, greatest(places, counts) ?? 1),
    priceOf: price && ((input, output) => priceOf(input, output, price)),
  }
}

/** The greatest of some numbers, because providers differ in which one counts. Texts count, as some servers accept them. */
function greatest(places: readonly JsonObject[], names: readonly string[]): number | undefined {
  let found: number | undefined
  for (const place of places)
    for (const name of names) {
      const value = place[name]
      const text = isRawNumber(value) ? value.rawJSON : value
      const number = typeof text === 'string' && text.trim() !== '' ? Number(text) : typeof text === 'number' ? text : Number.NaN
      if (number >= 0 && number > (found ?? -1)) found = number
    }
  return found
}

/** Estimates the tokens of a prompt: texts and definitions of tools by their length, images, documents and audio by their size. */
export function promptTokensOf(body: JsonObject): number {
  let bytes = 0
  let media = 0
  const waiting: { readonly value: unknown; readonly isSchema: boolean }[] = [{ value: body, isSchema: false }]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { value, isSchema } = next
    if (typeof value === 'string') bytes += Buffer.byteLength(value)
    else if (Array.isArray(value)) for (const each of value as unknown[]) waiting.push({ value: each, isSchema })
    else if (isObject(value)) {
      const medium = isSchema ? undefined : mediumOf(value)
      if (medium !== undefined) {
        media += tokensOf(medium, value)
        if (typeof value['text'] === 'string') bytes += Buffer.byteLength(value['text'])
      } else
        for (const key of Object.keys(value)) {
          if (isSchema) bytes += key.length
          else if (skipped.has(key)) continue
          waiting.push({ value: value[key], isSchema: isSchema || schemas.has(key) })
        }
    } else if (isSchema) bytes += 4
  }
  return tokensIn(bytes) + media
}

/** The medium that a part of a message is; undefined: it is text, or has other parts. */
function mediumOf(part: JsonObject): Medium | undefined {
  const { type, source } = part
  if (inside(source)['type'] === 'text' || inside(source)['type'] === 'content') return undefined
  if ('image_url' in part || type === 'image' || type === 'input_image' || isMedium(part['image'])) return 'image'
  if (type === 'input_audio' || isMedium(part['audio']) || isMedium(part['video']) || 'video_url' in part) return 'audio'
  if (type === 'document' || type === 'file' || type === 'input_file' || isMedium(part['document'])) return 'document'
  const data = inside(part['inlineData'] ?? part['inline_data'] ?? part['fileData'])
  const mime = data['mimeType'] ?? data['mime_type'] ?? data['fileUri']
  if (typeof mime !== 'string') return undefined
  return mime.startsWith('image/') ? 'image' : /^(?:audio|video)\//.test(mime) ? 'audio' : 'document'
}

/** A medium of Bedrock: `{format, source}`. */
const isMedium = (value: unknown): boolean => isObject(value) && 'source' in value && inside(value['source'])['text'] === undefined

function tokensOf(medium: Medium, part: JsonObject): number {
  if (medium === 'image' && (part['detail'] === 'low' || inside(part['image_url'])['detail'] === 'low')) return LOW_IMAGE_TOKENS
  const length = longestText(part, 0)
  // Base64 has four characters for three bytes.
  const tokens = length < MIN_DATA_LENGTH ? TOKENS_BY_REFERENCE[medium] : Math.ceil((length * 3) / 4 / BYTES_PER_TOKEN[medium])
  return medium === 'image' ? Math.min(IMAGE_TOKENS, Math.max(LOW_IMAGE_TOKENS, tokens)) : tokens
}

function longestText(value: unknown, depth: number): number {
  if (typeof value === 'string') return value.length
  if (!isObject(value) || depth > 3) return 0
  return Object.values(value).reduce<number>((longest, each) => Math.max(longest, longestText(each, depth + 1)), 0)
}
