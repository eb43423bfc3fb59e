import type { HeaderList } from '../../http/headers.ts'
import type { Allowance } from './bucket.ts'

const LIMIT = 'x-ratelimit-limit'
const REMAINING = 'x-ratelimit-remaining'
const RESET = 'x-ratelimit-reset'

/** The headers of a 429: x-ratelimit-limit, -remaining and -reset (seconds, rounded up), and retry-after (RFC 6585 §4), at least 1 s. */
export function headersOf({ limit, remaining, resetMs }: Allowance): Record<string, string> {
  const reset = toSeconds(resetMs)
  return { [LIMIT]: String(limit), [REMAINING]: String(remaining), [RESET]: reset, 'retry-after': reset === '0' ? '1' : reset }
}

/** Adds all headers or none: headers of an upstream that limits requests itself are kept, and a mix would be meaningless. */
export function addHeaders(headers: HeaderList, { limit, remaining, resetMs }: Allowance): void {
  const { raw } = headers
  for (let i = 0; i < raw.length; i += 2) if (isOwn(raw[i])) return
  headers.append(LIMIT, String(limit))
  headers.append(REMAINING, String(remaining))
  headers.append(RESET, toSeconds(resetMs))
}

const isOwn = (name: string | undefined): boolean => name === LIMIT || name === REMAINING || name === RESET
const toSeconds = (ms: number): string => String(Math.ceil(ms / 1000))
