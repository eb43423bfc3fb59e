import type { ResponseHead } from '../../http/message.ts'
import { parseError } from './causes/evidence.ts'
import { isObject } from './common/json.ts'
import type { UpstreamFormat } from './common/types.ts'
import type { ProviderState } from './choice/candidates.ts'
import type { LlmTarget } from './choice/target.ts'

/** Time for which it is remembered whether a server has the Responses API. */
const MEMORY_MS = 10 * 60_000
/** Statuses of a server that does not have an API: not found, method not allowed, not implemented. */
const missing: ReadonlySet<number> = new Set([404, 405, 501])
/** An error for something else that does not exist, in the request. Clients cause it at will. */
const OTHER = /model|deployment|\bitem\b|response with id|previous_response|conversation/i
const MAX_SEARCHED = 4096

/** Whether a provider is known to lack the Responses API (llm.md §5.1). */
export const lacksResponses = ({ responses }: ProviderState, nowMs: number): boolean => responses.lacksUntilMs > nowMs

/** Whether the status of a response may say that the server does not have the Responses API, which its body decides. */
export function mayLackResponses({ path, state }: Pick<LlmTarget, 'path' | 'state'>, status: number, nowMs: number): boolean {
  // A configured path leads to one API.
  return missing.has(status) && path === undefined && state.responses.hasUntilMs <= nowMs
}

/** Remembers that the server does not have the Responses API, if an error says so. Returns whether it does. */
export function learnMissing(state: Pick<ProviderState, 'responses'>, status: number, body: Buffer, nowMs: number): boolean {
  if (status === 404) {
    const error = parseError(body.toString())
    if (isObject(error) && OTHER.test(JSON.stringify(error).slice(0, MAX_SEARCHED))) return false
  }
  state.responses.lacksUntilMs = nowMs + MEMORY_MS
  return true
}

/** Remembers that the server has the Responses API, or that it does not have Chat Completions either, so that its earlier error was another. */
export function learnFormat(
  { responses }: Pick<ProviderState, 'responses'>,
  to: UpstreamFormat,
  { status }: Pick<ResponseHead, 'status'>,
  nowMs: number,
): void {
  if (to === 'responses' && status < 300) responses.hasUntilMs = nowMs + MEMORY_MS
  else if (to === 'completions' && missing.has(status)) responses.lacksUntilMs = 0
}
