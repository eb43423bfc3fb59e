import type { HeaderList } from '../../http/headers.ts'
import type { Allowance } from './bucket.ts'

/** x-ratelimit-limit, -remaining and -reset (whole seconds, rounded up). */
export function headersOf({ limit, remaining, resetMs }: Allowance): Record<string, string> {
  return { 'x-ratelimit-limit': String(limit), 'x-ratelimit-remaining': String(remaining), 'x-ratelimit-reset': String(Math.ceil(resetMs / 1000)) }
}

/** All or none: an upstream that limits by itself knows better, and a mix of both would say nothing. */
export function addHeaders(headers: HeaderList, { limit, remaining, resetMs }: Allowance): void {
  const { raw } = headers
  for (let i = 0; i < raw.length; i += 2) if (isOwn(raw[i])) return
  headers.append('x-ratelimit-limit', String(limit))
  headers.append('x-ratelimit-remaining', String(remaining))
  headers.append('x-ratelimit-reset', String(Math.ceil(resetMs / 1000)))
}

function isOwn(name: string | undefined): boolean {
  return name === 'x-ratelimit-limit' || name === 'x-ratelimit-remaining' || name === 'x-ratelimit-reset'
}
