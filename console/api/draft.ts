import { signal } from '@preact/signals'

/** A request for "Try it" as the form shows it. */
export interface Draft {
  /** Key of the listener; empty: the first one. */
  readonly listener: string
  readonly method: string
  /** Host and path with query, such as `shop.example/cart?id=1`. */
  readonly url: string
  /** `name: value`, one a line. */
  readonly headers: string
  readonly body: string
  /** What the draft was made from and what it lacks; shown above the form. */
  readonly note: string
}

export const emptyDraft: Draft = { listener: '', method: 'GET', url: '', headers: '', body: '', note: '' }

/** The request that "Try it" shows. Other pages set it and go to `#/routes/try`. */
export const draft = signal<Draft>(emptyDraft)

/** Parts of the URL of a draft. A scheme is ignored: the listener decides about TLS. */
export function splitUrl(url: string): { readonly host: string; readonly path: string } {
  const text = url.trim().replace(/^https?:\/\//i, '')
  const end = text.search(/[/?#]/)
  if (end === -1) return { host: text, path: '/' }
  const rest = text.slice(end).replace(/#.*$/, '')
  return { host: text.slice(0, end), path: rest.startsWith('/') ? rest : `/${rest}` }
}

/** Header fields of a text with one `name: value` a line. Throws an Error that names a line without a colon. */
export function parseHeaders(text: string): [string, string][] {
  return text.split('\n').flatMap((line, index) => {
    if (line.trim() === '') return []
    const colon = line.indexOf(':')
    if (colon < 1) throw new Error(`headers, line ${index + 1}: ${JSON.stringify(line.trim())} has no colon; write "name: value"`)
    return [[line.slice(0, colon).trim(), line.slice(colon + 1).trim()] as [string, string]]
  })
}

/** A shell word: quoted if needed. */
export const shellWord = (text: string): string => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`)
