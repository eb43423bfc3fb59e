import type { Block } from '../../common/neutral.ts'
import { unsupported } from '../../common/unsupported.ts'

type Document = Extract<Block, { type: 'document' }>

const formats = new Set(['pdf', 'csv', 'doc', 'docx', 'xls', 'xlsx', 'html', 'txt', 'md'])
const formatOfType: Readonly<Record<string, string>> = {
  'application/pdf': 'pdf',
  'text/csv': 'csv',
  'application/msword': 'doc',
  'application/vnd.openxmlformats-officedocument.wordprocessingml.document': 'docx',
  'application/vnd.ms-excel': 'xls',
  'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet': 'xlsx',
  'text/html': 'html',
  'text/plain': 'txt',
  'text/markdown': 'md',
}

/** The documents of one request. Converse requires a known format, and unique names of few characters (llm.md §7.8). */
export class Documents {
  readonly #seen = new Map<string, number>()

  /** Throws a FormatError for documents of an unknown format. */
  write({ mediaType, filename, data, text, at }: Document): { format: string; name: string; source: { bytes: string } } {
    const extension = /\.([a-z0-9]+)$/i.exec(filename ?? '')?.[1]?.toLowerCase()
    const format = formatOfType[mediaType ?? ''] ?? (extension === 'htm' ? 'html' : extension)
    if (format === undefined || !formats.has(format))
      throw unsupported(at, `a file must be one of ${[...formats].join(', ')}, got ${mediaType ?? filename ?? 'no type'}`)
    return { format, name: this.#name(filename), source: { bytes: text === undefined ? data : Buffer.from(text).toString('base64') } }
  }

  #name(filename: string | undefined): string {
    const plain = (filename ?? '')
      .replace(/\.[a-z0-9]+$/i, '')
      .replace(/[^A-Za-z0-9 ()[\]-]/g, ' ')
      .replace(/ +/g, ' ')
      .trim()
    const name = plain === '' ? 'document' : plain
    const count = (this.#seen.get(name) ?? 0) + 1
    this.#seen.set(name, count)
    return count === 1 ? name : `${name} [${count}]`
  }
}
