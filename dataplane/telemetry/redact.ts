import { inspect } from 'node:util'
import { REDACTED } from '#api/names.ts'

/** Wraps a secret: prints as `<redacted>` in logs, JSON, errors and `console.log`. `reveal` returns the value. */
export class Redacted<T> {
  readonly #value: T

  constructor(value: T) {
    this.#value = value
  }

  reveal(): T {
    return this.#value
  }

  toString(): string {
    return REDACTED
  }

  toJSON(): string {
    return REDACTED
  }

  [inspect.custom](): string {
    return REDACTED
  }
}

/** Headers whose values are credentials; lower case. */
export const sensitiveHeaders: ReadonlySet<string> = new Set([
  'authorization',
  'proxy-authorization',
  'cookie',
  'set-cookie',
  'x-api-key',
  'api-key',
  'x-goog-api-key',
  'x-amz-security-token',
])

const sensitiveName =
  /^(?:authorization|proxy-?authorization|cookie|set-?cookie|password|passwd|passphrase|private-?key|(?:x-)?api-?keys?|access-?keys?|secret-?keys?|secret-?access-?key|client-?secret|session-?(?:token|key)|(?:access|refresh|id|raw|bearer)-?token|token|users|credentials?)$/i

/** True for names of fields that hold credentials, in any of the usual spellings. */
export function isSensitiveName(name: string): boolean {
  return sensitiveName.test(name.replaceAll('_', '-'))
}

const patterns: readonly [RegExp, string][] = [
  [/-----BEGIN ([A-Z ]*PRIVATE KEY)-----[\s\S]*?(?:-----END \1-----|$)/g, REDACTED],
  // Credentials (RFC 9110 §11.4): scheme and token68. The gateway's own errors contain "basic authentication".
  [/\b(Bearer|Basic)\s+(?!authentication(?:\s|$))[A-Za-z0-9\-._~+/]{8,}=*/gi, `$1 ${REDACTED}`],
  // user:password@ of a URL
  [/(\b[a-z][a-z0-9+.-]*:\/\/)[^/?#@\s"']+@/gi, `$1${REDACTED}@`],
]

/** Redacts likely secrets in free text: private keys, credentials, user info of URLs. */
export function redactText(text: string): string {
  if (text.length < 8) return text
  let out = text
  for (const [pattern, replacement] of patterns) out = out.replace(pattern, replacement)
  return out
}
