import type { Block } from '../../common/neutral.ts'
import { unsupported } from '../../common/unsupported.ts'

type Image = Extract<Block, { type: 'image' | 'imageUrl' }>
type Document = Extract<Block, { type: 'document' }>

const BASE64_URL = /^data:([^;,]+)(?:;[^;,]*)*;base64,/i
const types: Readonly<Record<string, string>> = {
  pdf: 'application/pdf',
  txt: 'text/plain',
  md: 'text/markdown',
  csv: 'text/csv',
  htm: 'text/html',
  html: 'text/html',
  json: 'application/json',
}

/** Reads an image URL: a data URL becomes an image, any other a reference. `at` is the place of the part in the client's body. */
export function readImage(url: string, at: string): Image {
  const data = readDataUrl(url)
  return data ? { type: 'image', ...data, at } : { type: 'imageUrl', url, at }
}

/** Reads a file from a data URL or plain base64. Throws a FormatError for anything that is not inline. */
export function readFile(data: string | undefined, filename: string | undefined, at: string): Image | Document {
  const inline = data === undefined ? undefined : readDataUrl(data)
  if (inline?.mediaType.startsWith('image/') === true) return { type: 'image', ...inline, at }
  if (inline) return { type: 'document', ...inline, filename, at }
  // Base64 has no colon, any URL has.
  if (data === undefined || data === '' || data.slice(0, 64).includes(':'))
    throw unsupported(at, 'a file must be sent inline, as base64 or as a data URL; this provider reads neither file ids nor URLs')
  const extension = /\.([a-z0-9]+)$/i.exec(filename ?? '')?.[1]?.toLowerCase() ?? ''
  return { type: 'document', mediaType: Object.hasOwn(types, extension) ? types[extension] : undefined, filename, data, at }
}

function readDataUrl(url: string): { mediaType: string; data: string } | undefined {
  // Match only the beginning, because files are large.
  const match = BASE64_URL.exec(url.slice(0, 256))
  return match?.[1] === undefined ? undefined : { mediaType: match[1].toLowerCase(), data: url.slice(match[0].length) }
}
