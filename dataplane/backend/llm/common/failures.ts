import { isObject } from './json.ts'
import { filledText, inside, textOf } from './read.ts'
import { typeOfGoogleStatus } from './google-status.ts'

/** An error that an upstream reports inside a response with status 200. */
export interface Failure {
  readonly type: string
  readonly message: string
}

/** The message for an error whose text was not found. */
export const UNKNOWN_ERROR = 'the upstream reported an error'

/**
 * Reads an error in a body or an event, in the shapes of all providers: a member `error`, `object: error` (vLLM, Mistral), `type: error` (Anthropic), the
 * same in a list (Google). `name` is that of the event. undefined if there is none.
 */
export function readFailure(received: unknown, name?: string): Failure | undefined {
  const body: unknown = Array.isArray(received) && received.length === 1 ? received[0] : received
  if (!isObject(body)) return name === 'error' ? { type: 'api_error', message: textOf(received) ?? UNKNOWN_ERROR } : undefined
  const { error } = body
  const isNamed = name === 'error' || body['object'] === 'error' || body['type'] === 'error'
  if (!isNamed && (error === undefined || error === null || error === false || error === '')) return undefined
  const details = isObject(error) ? error : body
  return {
    type: typeOf(details['type']) ?? typeOfGoogleStatus(textOf(details['status'])) ?? filledText(details['code']) ?? 'api_error',
    message:
      filledText(details['message']) ?? filledText(error) ?? filledText(inside(details['detail'])['message']) ?? filledText(details['detail']) ?? UNKNOWN_ERROR,
  }
}

/** The type of an error, not that of an event. */
const typeOf = (type: unknown): string | undefined => (type === 'error' ? undefined : filledText(type))
