import type { HeaderList } from '../../http/headers.ts'
import type { Allowance } from './bucket.ts'

/** x-ratelimit-limit, -remaining and -reset (whole seconds, rounded up). */
export function headersOf({ limit, remaining, resetMs }: Allowance): Record<string, string> {
  return { 'x-ratelimit-limit': String(limit), 'x-ratelimit-remaining': String(remaining), 'x-ratelimit-reset': String(Math.ceil(resetMs / 1000)) }
}

/** All or none: an upstream that limits by itself knows better, and a mix of both would say nothing. */
export function addHeaders(headers: HeaderList, allowance: Allowance): void {
  const own = headersOf(allowance)
  for (const name in own) if (headers.has(name)) return
  for (const name in own) headers.append(name, own[name] ?? '')
}
