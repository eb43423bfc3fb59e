import type { HeaderList } from '../../../http/headers.ts'
import type { StreamError, Target } from '../common/types.ts'
import { parseError, readEvidence } from './evidence.ts'
import { readHints } from './hints.ts'
import { byStatus, generic, signals, type Api } from './table.ts'
import type { Evidence, Signal, Verdict } from './types.ts'

/** Whose rows of the table are read first. Servers that are gateways themselves pass the errors of other vendors on, so all rows are read. */
const apis: Readonly<Record<Target, readonly Api[]>> = {
  openai: ['openai', 'anthropic', 'google', 'bedrock'],
  azure: ['openai', 'anthropic', 'google', 'bedrock'],
  compatible: ['openai', 'anthropic', 'google', 'bedrock'],
  responses: ['openai', 'anthropic', 'google', 'bedrock'],
  anthropic: ['anthropic', 'openai', 'bedrock', 'google'],
  vertexClaude: ['anthropic', 'google', 'openai', 'bedrock'],
  gemini: ['google', 'openai', 'anthropic', 'bedrock'],
  vertex: ['google', 'openai', 'anthropic', 'bedrock'],
  converse: ['bedrock', 'anthropic', 'openai', 'google'],
}

/**
 * Why a target failed, by the status, the headers and the body of its response, or by an error in a response with status 200 (llm.md §15.4). Pure: `epochMs`
 * is the time now.
 */
export function causeOf(target: Target, status: number, headers: HeaderList, error: Buffer | StreamError, epochMs: number): Verdict {
  const evidence = readError(headers, error)
  const { retryAfterMs, shouldRetry } = readHints(headers, epochMs, evidence.retryAfterMs)
  const { cause, scope } = findSignal(target, status >= 400 ? status : evidence.status, evidence)
  return { cause, scope, retryAfterMs, shouldRetry }
}

function readError(headers: HeaderList, error: Buffer | StreamError): Evidence {
  if (Buffer.isBuffer(error)) return readEvidence(parseError(error.toString()), headers.get('x-amzn-errortype'))
  // A finish reason that names a failure is a code, not a message.
  const { received } = error
  const evidence = typeof received === 'string' ? readEvidence(undefined, received) : readEvidence(received, error.type)
  return evidence.message === '' ? { ...evidence, message: error.message } : evidence
}

function findSignal(target: Target, status: number | undefined, evidence: Evidence): Pick<Signal, 'cause' | 'scope'> {
  for (const api of apis[target]) {
    const found = signals[api].find((signal) => matches(signal, status, evidence))
    if (found !== undefined) return found
  }
  return generic.find((signal) => matches(signal, status, evidence)) ?? byStatus(status)
}

function matches({ status: statuses, codes, says }: Signal, status: number | undefined, evidence: Evidence): boolean {
  // An event of a stream has no status: its code decides.
  if (statuses !== undefined && status !== undefined && !statuses.includes(status)) return false
  if (statuses !== undefined && status === undefined && codes === undefined && says === undefined) return false
  if (codes !== undefined && !codes.some((code) => evidence.codes.has(code))) return false
  return says === undefined || says.test(evidence.message.slice(0, MAX_MESSAGE_LENGTH))
}

/** Longest text that is searched. */
const MAX_MESSAGE_LENGTH = 4096
