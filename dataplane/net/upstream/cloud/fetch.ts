/** Credentials are unavailable. The message may reach the client: it names endpoints and files, never sent or received data. */
export class CredentialError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'CredentialError'
  }
}

/** Timeout of all requests for one credential together (llm.md §16). */
export const CREDENTIAL_TIMEOUT_MS = 5000
const RESPONSE_LIMIT_BYTES = 256 * 1024

/** A request to a token endpoint. */
export interface TokenRequest {
  readonly method?: 'GET' | 'POST' | 'PUT'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | URLSearchParams
  readonly timeoutMs?: number
}

/** Sends a request to a token endpoint, which `what` names in errors. Rejects redirects: credentials are sent only to configured endpoints. */
export async function fetchText(
  what: string,
  url: string,
  { method = 'GET', headers = {}, body, timeoutMs = CREDENTIAL_TIMEOUT_MS }: TokenRequest = {},
): Promise<string> {
  const response = await fetch(url, {
    method,
    headers,
    ...(body !== undefined && { body }),
    redirect: 'error',
    signal: AbortSignal.timeout(timeoutMs),
  }).catch(() => {
    throw new CredentialError(`${what} cannot be reached`)
  })
  const text = await response.text().catch(() => {
    throw new CredentialError(`${what} broke off`)
  })
  if (!response.ok) throw new CredentialError(`${what} answered ${response.status}`)
  if (text.length > RESPONSE_LIMIT_BYTES) throw new CredentialError(`${what} answered too much`)
  return text
}

/** Like `fetchText`, for a JSON object. */
export async function fetchJson(what: string, url: string, request?: TokenRequest): Promise<Readonly<Record<string, unknown>>> {
  return parseObject(what, await fetchText(what, url, request))
}

export function parseObject(what: string, text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Readonly<Record<string, unknown>>
  } catch {
    // Reported below without the text, which may contain a secret.
  }
  throw new CredentialError(`${what} is no JSON object`)
}

/** A required string member. */
export function textOf(what: string, object: Readonly<Record<string, unknown>>, name: string): string {
  const value = object[name]
  if (typeof value === 'string' && value !== '') return value
  throw new CredentialError(`${what} has no ${name}`)
}
