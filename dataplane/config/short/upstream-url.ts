/** Parts of a URL of the short forms, which a backend needs separately. */
export interface UpstreamUrl {
  readonly host: string
  readonly port: number
  readonly isTls: boolean
  /** Empty for `/`. */
  readonly path: string
  /** Query with its question mark; empty if there is none. */
  readonly query: string
}

/** Parses the URL of an upstream; a string is the problem that it has. */
export function parseUpstreamUrl(text: string): UpstreamUrl | string {
  let url: URL
  try {
    url = new URL(text)
  } catch {
    return 'is not a valid URL'
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'must start with http:// or https://'
  if (url.username !== '' || url.password !== '') return 'contains a user name or password; use apiKey, or policies.auth'
  if (url.hash !== '') return 'contains a fragment (#), which is never sent; remove it'
  const isTls = url.protocol === 'https:'
  const port = url.port === '' ? (isTls ? 443 : 80) : Number(url.port)
  if (port === 0) return 'has port 0; write a port of 1 to 65535'
  return { host: url.hostname.replace(/^\[(.*)\]$/, '$1'), port, isTls, path: url.pathname === '/' ? '' : url.pathname, query: url.search }
}
