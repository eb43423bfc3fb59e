import type { Cooperative } from '../../../runtime/cooperative.ts'
import type { JsonObject } from '../common/types.ts'

/** Characters of base64 to decode before other events may be processed; a multiple of four. */
const PIECE = 256 * 1024
const DATA_URL = /^data:([^,]{0,256}?);base64,/i
/** Media whose bytes are not text. Everything else is text if it is valid UTF-8. */
const BINARY = /^(?:image|audio|video)\//i

/** A text file that a request carries in base64. */
export interface EncodedText {
  readonly text: string
  /** Puts a changed text back into the form that the request had. */
  encode(text: string): string
}

/** Whether the string at a key holds a file in base64 or a data URL: `file_data`, and `data` of base64 sources. */
export function isEncodedFile(key: string, object: JsonObject): boolean {
  if (key === 'file_data') return true
  const mediaType = object['media_type'] ?? object['mimeType'] ?? object['mime_type']
  return (
    key === 'data' &&
    (object['type'] === 'base64' || (object['type'] === undefined && mediaType !== undefined)) &&
    !(typeof mediaType === 'string' && BINARY.test(mediaType))
  )
}

/** Decodes a file; undefined if it is no text: not base64, not UTF-8, or with a NUL character. */
export function* decodeText(value: string): Cooperative<EncodedText | undefined> {
  const prefix = DATA_URL.exec(value)
  if (prefix === null ? value.startsWith('data:') : BINARY.test(prefix[1] ?? '')) return undefined
  const start = prefix?.[0].length ?? 0
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  let text = ''
  try {
    for (let at = start; at < value.length; at += PIECE) {
      const piece = decoder.decode(Buffer.from(value.slice(at, at + PIECE), 'base64'), { stream: true })
      if (piece.includes('\0')) return undefined
      text += piece
      yield
    }
    text += decoder.decode()
  } catch {
    return undefined
  }
  return { text, encode: (changed) => value.slice(0, start) + Buffer.from(changed).toString('base64') }
}
