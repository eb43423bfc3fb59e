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
