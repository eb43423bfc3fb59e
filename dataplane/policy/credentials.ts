import type { HeaderList } from '../http/headers.ts'

/** Whether the credentials of a header line are for the caller. */
export type IsConcerned = (credentials: string) => boolean

/** The challenge of a 401 (RFC 6750 §3). Without credentials in the request, it has no error. */
export const bearerChallenge = (error?: 'invalid_token'): Readonly<Record<string, string>> => ({
  'www-authenticate': `Bearer realm="Restricted"${error === undefined ? '' : `, error="${error}"`}`,
})

const isAny: IsConcerned = () => true

/**
 * The credentials of one scheme in Authorization (RFC 9110 §11.6.2); undefined if there are none. Lines of other schemes and those that
 * `isConcerned` excludes are ignored, so that several policies can use the header. Null if two lines remain: it is unknown which one the
 * upstream would use.
 */
export function findCredentials({ raw }: HeaderList, scheme: 'bearer' | 'basic', isConcerned = isAny): string | null | undefined {
  let found: string | undefined
  for (let i = 0; i < raw.length; i += 2) {
    const value = raw[i + 1] ?? ''
    if (raw[i] !== 'authorization' || !isOfScheme(value, scheme)) continue
    const credentials = credentialsOf(value, scheme)
    if (!isConcerned(credentials)) continue
    if (found !== undefined) return null
    found = credentials
  }
  return found
}

/** Removes these lines, so that the upstream does not receive them. */
export function removeCredentials(headers: HeaderList, scheme: 'bearer' | 'basic', isConcerned = isAny): void {
  headers.remove('authorization', (value) => isOfScheme(value, scheme) && isConcerned(credentialsOf(value, scheme)))
}

function isOfScheme(value: string, scheme: string): boolean {
  // Servers trim values, so a scheme without credentials has no trailing space.
  return (value.length === scheme.length || value.charCodeAt(scheme.length) === 0x20) && value.slice(0, scheme.length).toLowerCase() === scheme
}

const credentialsOf = (value: string, scheme: string): string => value.slice(scheme.length + 1).trim()

/**
 * Whether a bearer credential has the form of a JSON Web Token (RFC 7515 §3.1), valid or not: three parts, the first of them JSON.
 * Decides which policy a line is for if a route accepts both tokens and API keys.
 */
export function isTokenShaped(credentials: string): boolean {
  const [, header] = /^([\w-]+)\.[\w-]*\.[\w-]*$/.exec(credentials) ?? []
  return header !== undefined && /^\s*\{/.test(Buffer.from(header.slice(0, 64), 'base64url').toString('latin1'))
}

/** Whether a bearer credential has the form of an API key: anything but a JSON Web Token. */
export const isKeyShaped: IsConcerned = (credentials) => !isTokenShaped(credentials)
