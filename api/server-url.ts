/** The decoded parts of the URL of a server. */
interface ServerUrl {
  readonly url: URL
  /** Without the brackets of an IPv6 address. */
  readonly host: string
  /** Empty: none. */
  readonly user: string
  readonly password: string | undefined
  /** Without the first `/`. */
  readonly path: string
}

interface ServerUrlForm {
  /** Matches `URL.protocol`. */
  readonly protocol: RegExp
  /** What the server is, as in `the URL of a database`. */
  readonly what: string
  /** What to give instead, for problems. */
  readonly form: string
  /** Whether the URL may have a query. */
  readonly hasQuery?: boolean
}

/** Reads the URL of a server. Returns a text for messages after the name of the field if it is invalid. The text has no part of the URL, which may hold a password. */
export function readServerUrl(text: string, { protocol, what, form, hasQuery = false }: ServerUrlForm): ServerUrl | string {
  const url = URL.parse(text)
  if (url === null || !protocol.test(url.protocol) || url.hostname === '' || url.hash !== '' || (!hasQuery && url.search !== ''))
    return `is not the URL of ${what}: ${form}`
  const [user, password, path] = [url.username, url.password, url.pathname.slice(1)].map(decode)
  if (user === undefined || password === undefined || path === undefined) return `has a malformed escape: ${form}`
  return { url, host: url.hostname.replace(/^\[(.*)\]$/, '$1'), user, password: password === '' ? undefined : password, path }
}

/** As `readServerUrl`, for a URL that must name a user and a database, its path. */
export function readDatabaseUrl(text: string, form: ServerUrlForm): ServerUrl | string {
  const server = readServerUrl(text, form)
  if (typeof server === 'string') return server
  const { user, path } = server
  return user === '' || path === '' || path.includes('/') ? `names no ${user === '' ? 'user' : 'database'}: ${form.form}` : server
}

/** The problem of the first of these paths that is relative, with its name after `field`. */
export function findRelativePath(field: string, paths: Readonly<Record<string, string | undefined>>): string | undefined {
  for (const [name, path] of Object.entries(paths))
    if (path !== undefined && !path.startsWith('/')) return `${field}.${name} is ${JSON.stringify(path)}: give an absolute path`
  return undefined
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
