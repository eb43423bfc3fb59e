import { inspect } from 'node:util'
import { REDACTED } from '#api/names.ts'
import { isSecretHeader } from '#api/secret-fields.ts'
import { KnownSecrets, type SecretSource } from './known-secrets.ts'

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

/** True for headers that hold credentials, by the name. */
export function isSensitiveHeader(name: string): boolean {
  return isSecretHeader(name) || ownHeaders?.test(name) === true
}

let ownHeaders: RegExp | undefined

/** Sets the headers that hold credentials besides those that `isSensitiveHeader` knows: names, in which `*` is any text (`logging.sensitiveHeaders`). */
export function setSensitiveHeaders(names: readonly string[]): void {
  ownHeaders =
    names.length === 0 ? undefined : new RegExp(`^(?:${names.map((name) => name.replace(/[.+?^$|]/g, String.raw`\$&`).replaceAll('*', '.*')).join('|')})$`, 'i')
}

const patterns: readonly [RegExp, string][] = [
  [/-----BEGIN ([A-Z ]*PRIVATE KEY)-----[\s\S]*?(?:-----END \1-----|$)/g, REDACTED],
  // Credentials (RFC 9110 §11.4): scheme and token68. The gateway's own errors contain "basic authentication".
  [/\b(Bearer|Basic)\s+(?!authentication(?:\s|$))[A-Za-z0-9\-._~+/]{8,}=*/gi, `$1 ${REDACTED}`],
  // user:password@ of a URL
  [/(\b[a-z][a-z0-9+.-]*:\/\/)[^/?#\s"']+@/gi, `$1${REDACTED}@`],
]

/** Keys of credentials in queries and forms: of providers, clouds (signed URLs), OAuth and OpenID Connect. */
const credentialKey =
  /^(?:key|api[-_]?key|subscription-key|(?:access|refresh|id|auth|session|security)[-_]?token|token|sig|signature|x-amz-(?:signature|security-token|credential)|x-goog-(?:signature|credential)|code|code_verifier|assertion|client_assertion|client_secret|secret|password|passwd|pwd|jwt|sas|credentials?)$/i
/** Of the longest key, with each character percent-encoded. */
const MAX_KEY_LENGTH = 3 * 24
const beforeKey = '?&;'
const valueEnd = /[&;#\s"']/g

/** Redacts values of query keys. A single expression over the text would take three times as long. */
function redactQuery(text: string): string {
  let [out, copied] = ['', 0]
  for (let end = text.indexOf('='); end !== -1; end = text.indexOf('=', end + 1)) {
    let start = end
    while (start > copied && end - start <= MAX_KEY_LENGTH && !beforeKey.includes(text.charAt(start - 1))) start--
    if (end - start > MAX_KEY_LENGTH || !credentialKey.test(decodeKey(text.slice(start, end)))) continue
    valueEnd.lastIndex = end + 1
    const next = valueEnd.exec(text)?.index ?? text.length
    if (next === end + 1) continue
    out += text.slice(copied, end + 1) + REDACTED
    copied = next
    end = next - 1
  }
  return copied === 0 ? text : out + text.slice(copied)
}

/** Servers decode the names of keys before they compare them: `api%5Fkey` is `api_key`. */
function decodeKey(key: string): string {
  return key.includes('%') ? key.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))) : key
}

/** Redacts likely secrets in free text: private keys, credentials, user info and queries of URLs, and known secrets. */
export function redactText(text: string): string {
  if (text.length < 8) return text
  let out = text
  for (const [pattern, replacement] of patterns) out = out.replace(pattern, replacement)
  return redactValue(out)
}

/** Redacts known secrets, and credentials in queries. For values of requests: without the patterns of `redactText`, it costs nothing for most of them. */
export function redactValue(text: string): string {
  return known.redact(redactQuery(text))
}

const known = new KnownSecrets()

/** Makes the credentials of this config known to this thread: they are redacted wherever text leaves it. They are read when the next text does. */
export function setKnownSecrets(config: SecretSource): void {
  known.set(config)
}
