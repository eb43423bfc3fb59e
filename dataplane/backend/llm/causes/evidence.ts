import { doubles, parseJson } from '#api/json/index.ts'
import { filledText, inside } from '../common/read.ts'
import { isObject } from '../common/json.ts'
import type { JsonObject } from '../common/types.ts'
import { durationMs } from './hints.ts'
import type { Evidence } from './types.ts'

/** Members of an error that hold a code. `__type` is of AWS, `reason` and `status` of Google, `error_code` of Anthropic, the others of OpenRouter. */
const codeMembers = ['code', 'type', 'status', '__type', 'reason', 'error_code', 'error_type', 'provider_code', 'limit_source'] as const
/** Members of an error with another object, or a list of them, that has codes. */
const nested = ['error', 'innererror', 'details', 'detail', 'violations'] as const
const MAX_CODE_LENGTH = 100
const MAX_DEPTH = 5
const MAX_ITEMS = 16
/** Longest error of an upstream that is parsed, in UTF-16 units. */
const MAX_ERROR_LENGTH = 65_536

interface Draft {
  readonly codes: Set<string>
  message: string
  status: number | undefined
  retryAfterMs: number | undefined
}

/** Reads the codes and the message of an error: a parsed body, or an event of a stream. `type` is a code from elsewhere, such as a header or a frame. */
export function readEvidence(received: unknown, type?: string): Evidence {
  const draft: Draft = { codes: new Set(), message: '', status: undefined, retryAfterMs: undefined }
  if (type !== undefined) addCode(draft, type)
  visit(received, draft, 0)
  return draft
}

/** The body of an error as JSON; a text if it is none. */
export function parseError(text: string): unknown {
  if (!/^\s*[{[]/.test(text) || text.length > MAX_ERROR_LENGTH) return text
  try {
    return parseJson(text, { numbers: doubles })
  } catch {
    return text
  }
}

function visit(value: unknown, draft: Draft, depth: number): void {
  if (Array.isArray(value)) {
    for (const item of value.slice(0, MAX_ITEMS)) visit(item, draft, depth + 1)
  } else if (typeof value === 'string') draft.message ||= value
  else if (isObject(value) && depth <= MAX_DEPTH) visitObject(value, draft, depth)
}

function visitObject(value: JsonObject, draft: Draft, depth: number): void {
  for (const name of codeMembers) addCode(draft, value[name])
  draft.message ||= filledText(value['message']) ?? filledText(value['Message']) ?? ''
  if (filledText(value['@type'])?.endsWith('google.rpc.RetryInfo') === true) draft.retryAfterMs ??= durationMs(filledText(value['retryDelay']) ?? '')
  if (/PerDay/.test(filledText(value['quotaId']) ?? '')) draft.codes.add('quota_per_day')
  // The prompt of a request that OpenRouter's moderation rejected.
  if (Array.isArray(value['reasons']) && 'flagged_input' in value) draft.codes.add('flagged_input')
  for (const name of nested) visit(value[name], draft, depth + 1)
  // A failed response of the Responses API repeats members of the request: only its error counts.
  if (depth === 0) return visit(inside(value['response'])['error'], draft, 1)
  visit(value['metadata'], draft, depth + 1)
  // OpenRouter repeats the error of its upstream as text.
  const raw = filledText(inside(value['metadata'])['raw'])
  if (raw !== undefined) visit(parseError(raw), draft, depth + 1)
}

/** AWS qualifies names: `com.amazon.coral.service#ThrottlingException`, `ThrottlingException:http://...`. */
function addCode(draft: Draft, value: unknown): void {
  const status = typeof value === 'number' ? value : typeof value === 'string' && /^[45]\d\d$/.test(value) ? Number(value) : undefined
  if (status !== undefined) {
    if (status >= 400 && status <= 599) draft.status ??= status
  } else if (typeof value === 'string' && value.length <= MAX_CODE_LENGTH)
    draft.codes.add(
      value
        .replace(/^[\w.]+#/, '')
        .replace(/:.*$/s, '')
        .trim()
        .toLowerCase(),
    )
}
