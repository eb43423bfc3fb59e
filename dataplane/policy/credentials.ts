import type { HeaderList } from '../http/headers.ts'

/**
 * The credentials of one scheme in Authorization (RFC 9110 §11.6.2). Lines of other schemes are no concern of the caller, so that
 * several authentications can each have theirs. Undefined: none. Null: two lines of the scheme; which of them the upstream would
 * believe is anyone's guess.
 */
export function findCredentials({ raw }: HeaderList, scheme: 'bearer' | 'basic'): string | null | undefined {
  let found: string | undefined
  for (let i = 0; i < raw.length; i += 2) {
    const value = raw[i + 1] ?? ''
    if (raw[i] !== 'authorization' || !isOfScheme(value, scheme)) continue
    if (found !== undefined) return null
    found = value.slice(scheme.length + 1).trim()
  }
  return found
}

/** Takes the scheme's line out, so that the upstream never sees it. */
export function removeCredentials(headers: HeaderList, scheme: 'bearer' | 'basic'): void {
  const others = headers.getAll('authorization').filter((value) => !isOfScheme(value, scheme))
  headers.remove('authorization')
  for (const value of others) headers.append('authorization', value)
}

function isOfScheme(value: string, scheme: string): boolean {
  // Servers cut white space at the end: a scheme without anything is one with nothing after it.
  return (value.length === scheme.length || value.charCodeAt(scheme.length) === 0x20) && value.slice(0, scheme.length).toLowerCase() === scheme
}
