import type { HeaderList } from '../http/headers.ts'

/** Which lines of a scheme concern the caller. */
export type IsConcerned = (credentials: string) => boolean

const isAny: IsConcerned = () => true

/**
 * The credentials of one scheme in Authorization (RFC 9110 §11.6.2). Lines of other schemes, and those that `isConcerned` leaves to
 * another policy, are no concern of the caller, so that several authentications can each have theirs. Undefined: none. Null: two
 * lines that concern it; which of them the upstream would believe is anyone's guess.
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

/** Takes those lines out, so that the upstream never sees them. */
export function removeCredentials(headers: HeaderList, scheme: 'bearer' | 'basic', isConcerned = isAny): void {
  headers.remove('authorization', (value) => isOfScheme(value, scheme) && isConcerned(credentialsOf(value, scheme)))
}

function isOfScheme(value: string, scheme: string): boolean {
  // Servers cut white space at the end: a scheme without anything is one with nothing after it.
  return (value.length === scheme.length || value.charCodeAt(scheme.length) === 0x20) && value.slice(0, scheme.length).toLowerCase() === scheme
}

const credentialsOf = (value: string, scheme: string): string => value.slice(scheme.length + 1).trim()

/**
 * Whether a bearer credential is meant to be a JSON Web Token (RFC 7515 §3.1), good or bad: three parts, the first of them JSON.
 * Where tokens and API keys are both asked for, this tells which policy a line is for.
 */
export function isTokenShaped(credentials: string): boolean {
  const [, header] = /^([\w-]+)\.[\w-]*\.[\w-]*$/.exec(credentials) ?? []
  return header !== undefined && /^\s*\{/.test(Buffer.from(header.slice(0, 64), 'base64url').toString('latin1'))
}

export const isKeyShaped: IsConcerned = (credentials) => !isTokenShaped(credentials)
