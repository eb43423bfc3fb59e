import type { JsonObject } from './types.ts'

/** Statuses of Google's APIs by HTTP status. */
const statuses: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  409: 'ABORTED',
  429: 'RESOURCE_EXHAUSTED',
  499: 'CANCELLED',
  501: 'UNIMPLEMENTED',
  502: 'UNAVAILABLE',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
  529: 'UNAVAILABLE',
}
/** HTTP statuses of errors in streams, by their type. */
const codes: Readonly<Record<string, number>> = {
  invalid_request_error: 400,
  content_filter: 400,
  authentication_error: 401,
  permission_error: 403,
  not_found_error: 404,
  rate_limit_error: 429,
  overloaded_error: 503,
  timeout_error: 504,
}

/** An error of Google's APIs (google.rpc.Status). */
export function writeGoogleError(code: number, message: string, status?: string): JsonObject {
  return { error: { code, message, status: status ?? statuses[code] ?? (code >= 500 ? 'INTERNAL' : 'INVALID_ARGUMENT') } }
}

/** An error in a stream, by its type in OpenAI's or Anthropic's API. */
export const writeGoogleFailure = (type: string, message: string): JsonObject =>
  writeGoogleError(Object.hasOwn(codes, type) ? (codes[type] ?? 500) : 500, message)

const errorTypes: Readonly<Record<string, string>> = {
  INVALID_ARGUMENT: 'invalid_request_error',
  FAILED_PRECONDITION: 'invalid_request_error',
  NOT_FOUND: 'not_found_error',
  PERMISSION_DENIED: 'permission_error',
  UNAUTHENTICATED: 'authentication_error',
  RESOURCE_EXHAUSTED: 'rate_limit_error',
}

/** The type of an error with a `status` of Google's APIs, such as RESOURCE_EXHAUSTED (llm.md §9); undefined if the status says no more than the HTTP status. */
export function typeOfGoogleStatus(status: string | undefined): string | undefined {
  return status !== undefined && Object.hasOwn(errorTypes, status) ? errorTypes[status] : undefined
}
