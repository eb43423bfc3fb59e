/**
 * The error table (traffic.md §6): for each error code the status and text of the response and the reason in logs and metrics.
 * The client sees the cause of an error only if its row has `detail`.
 */

/** Value of the access log's `reason` field and the metrics' `reason` label. */
export type Reason =
  | 'Upstream'
  | 'DirectResponse'
  | 'NotFound'
  | 'NoHealthyBackend'
  | 'Internal'
  | 'InvalidRequest'
  | 'JwtAuth'
  | 'BasicAuth'
  | 'APIKeyAuth'
  | 'ExtAuth'
  | 'Authorization'
  | 'Timeout'
  | 'ExtProc'
  | 'RateLimit'
  | 'Guardrail'
  | 'MCP'
  | 'UpstreamFailure'
  | 'UpstreamDenied'
  | 'ClientClosed'
  | 'FaultInjection'

/** One row of the error table. */
export interface ErrorRow {
  /** Status of the response, unless the request is gRPC. */
  status: number
  reason: Reason
  /** Body of the response. */
  text: string
  /** Separator to append to the text, followed by the cause. */
  detail?: ': ' | ', '
  /** Seconds in `retry-after`, if the error does not know better. */
  retryAfter?: number
  /** grpc-status, if it differs from `grpcStatusOfError(status)`. */
  grpc?: number
}

/** All error codes. docs/reference/errors.md is generated from it. */
export const errorTable = {
  BIND_NOT_FOUND: { status: 404, reason: 'NotFound', text: 'bind not found' },
  LISTENER_NOT_FOUND: { status: 404, reason: 'NotFound', text: 'listener not found' },
  ROUTE_NOT_FOUND: { status: 404, reason: 'NotFound', text: 'route not found' },
  MISDIRECTED: { status: 421, reason: 'NotFound', text: 'misdirected request' },
  NO_VALID_BACKENDS: { status: 500, reason: 'Internal', text: 'no valid backends', grpc: 14 },
  BACKEND_NOT_FOUND: { status: 500, reason: 'Internal', text: 'backend does not exist' },
  SERVICE_NOT_FOUND: { status: 500, reason: 'Internal', text: 'service not found' },
  NO_HEALTHY_BACKENDS: { status: 503, reason: 'NoHealthyBackend', text: 'no healthy backends' },
  DNS_FAILED: { status: 503, reason: 'UpstreamFailure', text: 'backends required DNS resolution which failed' },
  DESTINATION_DENIED: { status: 403, reason: 'Authorization', text: 'destination not allowed' },
  /** The address of a backend is one that no connection may go to (traffic.md §13.2). */
  UPSTREAM_DENIED: { status: 503, reason: 'UpstreamDenied', text: 'upstream address not allowed' },
  LOOP: { status: 508, reason: 'InvalidRequest', text: 'request loop detected' },
  CONNECTION_LIMIT: { status: 503, reason: 'UpstreamFailure', text: 'too many connections to the backend, retry later', retryAfter: 1 },
  UPSTREAM_FAILED: { status: 503, reason: 'UpstreamFailure', text: 'upstream call failed', detail: ': ' },
  UPSTREAM_TIMEOUT: { status: 504, reason: 'Timeout', text: 'upstream call timeout' },
  REQUEST_TIMEOUT: { status: 504, reason: 'Timeout', text: 'request timeout' },
  BACKEND_AUTH: { status: 500, reason: 'Internal', text: 'backend authentication failed', detail: ': ' },
  /** The request has no token that a token for the backend can be obtained with. */
  BACKEND_SUBJECT: { status: 401, reason: 'JwtAuth', text: 'backend authentication failed', detail: ': ' },
  /** The token endpoint failed. */
  BACKEND_TOKEN: { status: 502, reason: 'UpstreamFailure', text: 'backend authentication failed', detail: ': ' },
  FILTER_FAILED: { status: 500, reason: 'Internal', text: 'failed to apply filters', detail: ': ' },
  JWT: { status: 401, reason: 'JwtAuth', text: 'authentication failure', detail: ': ' },
  /** The authorization server that knows the token does not respond. */
  JWT_UNAVAILABLE: { status: 503, reason: 'JwtAuth', text: 'authentication not available', detail: ': ', retryAfter: 5 },
  /** No session, and the request does not start a login. */
  LOGIN: { status: 401, reason: 'JwtAuth', text: 'login required' },
  /** The provider or the browser returned something that is no login. */
  LOGIN_REJECTED: { status: 403, reason: 'JwtAuth', text: 'login failed', detail: ': ' },
  /** The provider does not respond, or not as OpenID Connect has it. */
  LOGIN_UNAVAILABLE: { status: 503, reason: 'JwtAuth', text: 'login not available', detail: ': ', retryAfter: 5 },
  BASIC: { status: 401, reason: 'BasicAuth', text: 'basic authentication failure', detail: ': ' },
  API_KEY: { status: 401, reason: 'APIKeyAuth', text: 'api key authentication failure', detail: ': ' },
  AUTHORIZATION: { status: 403, reason: 'Authorization', text: 'authorization failed' },
  AUTHORIZATION_INPUT: { status: 403, reason: 'Authorization', text: 'authorization failed: a rule cannot be evaluated on this request' },
  EXT_AUTH: { status: 403, reason: 'ExtAuth', text: 'external authorization failed' },
  EXT_AUTH_BODY: { status: 413, reason: 'ExtAuth', text: 'external authorization failed' },
  EXT_PROC: { status: 500, reason: 'ExtProc', text: 'ext_proc failed', detail: ': ' },
  PLUGIN: { status: 500, reason: 'Internal', text: 'plugin failed' },
  PLUGIN_TIMEOUT: { status: 504, reason: 'Timeout', text: 'plugin timeout' },
  ENDPOINT_PICKER: { status: 503, reason: 'ExtProc', text: 'endpoint picker failed', detail: ': ' },
  RATE_LIMIT_SERVICE: { status: 500, reason: 'RateLimit', text: 'rate limit failed' },
  /** A trusted proxy sent no usable address of the client (traffic.md §10). */
  CLIENT_ADDRESS: { status: 403, reason: 'Authorization', text: 'client address unknown' },
  IP_ALLOW_LIST: { status: 403, reason: 'Authorization', text: 'client address not allowed' },
  CSRF: { status: 403, reason: 'Authorization', text: 'CSRF validation failed' },
  RATE_LIMIT: { status: 429, reason: 'RateLimit', text: 'rate limit exceeded', retryAfter: 1 },
  BUDGET: { status: 429, reason: 'RateLimit', text: 'budget exceeded', detail: ': ' },
  BUDGET_SHARE: { status: 503, reason: 'RateLimit', text: 'budget not available', detail: ': ', retryAfter: 1 },
  BUDGET_KEY: { status: 403, reason: 'Authorization', text: 'request not allowed', detail: ': ' },
  BUDGET_PRICE: { status: 403, reason: 'Authorization', text: 'model not allowed', detail: ': ' },
  /** `faultInjection.abort` sets the status of the response. */
  FAULT_INJECTED: { status: 503, reason: 'FaultInjection', text: 'fault injected' },
  CACHE_ONLY: { status: 504, reason: 'InvalidRequest', text: 'no stored response', grpc: 14 },
  METHOD_NOT_ALLOWED: { status: 405, reason: 'InvalidRequest', text: 'method not allowed' },
  INVALID_REQUEST: { status: 400, reason: 'InvalidRequest', text: 'invalid request', grpc: 13 },
  NO_AUTHORITY: { status: 400, reason: 'InvalidRequest', text: 'invalid request: no authority or host', grpc: 13 },
  HEADERS_TOO_LARGE: { status: 431, reason: 'InvalidRequest', text: 'request header fields too large' },
  URI_TOO_LONG: { status: 414, reason: 'InvalidRequest', text: 'uri too long' },
  CLIENT_TIMEOUT: { status: 408, reason: 'Timeout', text: 'request head or body not received in time' },
  /** For logs and metrics only: there is no client left. */
  CLIENT_CLOSED: { status: 499, reason: 'ClientClosed', text: 'client closed the connection before the response' },
  UPGRADE_FAILED: { status: 502, reason: 'UpstreamFailure', text: 'request upgrade failed', detail: ', ' },
  PROCESSING_FAILED: { status: 503, reason: 'Internal', text: 'processing failed', detail: ': ' },
  HELD_BYTES: { status: 503, reason: 'Internal', text: 'too many bytes of bodies are buffered, retry later', retryAfter: 1 },
  BODY_TOO_LARGE: { status: 413, reason: 'InvalidRequest', text: 'request body too large' },
  RATE_LIMIT_INPUT: { status: 403, reason: 'RateLimit', text: 'rate limit failed: it cannot be evaluated on this request' },
  CONTENT_CODING: { status: 415, reason: 'InvalidRequest', text: 'unsupported content encoding', detail: ': ' },
  CONTENT_MISMATCH: { status: 400, reason: 'InvalidRequest', text: 'the request body does not match its content-encoding' },
  RESPONSE_CODING: { status: 502, reason: 'UpstreamFailure', text: 'the response has a content-encoding that cannot be decoded' },
  LLM_REQUEST: { status: 400, reason: 'InvalidRequest', text: 'failed to process LLM request', detail: ': ' },
  LLM_REQUEST_TOO_LARGE: { status: 413, reason: 'InvalidRequest', text: 'failed to process LLM request: request was too large', detail: ': ' },
  LLM_REQUEST_ENCODING: { status: 415, reason: 'InvalidRequest', text: 'failed to process LLM request: unsupported content encoding', detail: ': ' },
  LLM_RESPONSE: { status: 502, reason: 'UpstreamFailure', text: 'failed to process LLM response', detail: ': ' },
  LLM_MODEL_DENIED: { status: 403, reason: 'Authorization', text: 'model not allowed', detail: ': ' },
  LLM_MODEL_NOT_FOUND: { status: 404, reason: 'NotFound', text: 'the model does not exist', detail: ': ' },
  LLM_UNGUARDED: { status: 403, reason: 'Authorization', text: 'request not allowed', detail: ': ' },
  A2A_CARD: { status: 503, reason: 'UpstreamFailure', text: 'the agent card cannot be rewritten', detail: ': ' },
  A2A_METHOD: { status: 400, reason: 'InvalidRequest', text: 'the method of the A2A request cannot be known', detail: ': ' },
  A2A_GRPC_CARD: { status: 501, reason: 'InvalidRequest', text: 'agent cards are not available over gRPC: use /.well-known/agent-card.json', grpc: 12 },
  MCP_IDENTITY_PROVIDER: { status: 500, reason: 'MCP', text: 'identity provider failed', detail: ': ' },
  GUARD_REJECTED: { status: 403, reason: 'Guardrail', text: 'rejected by a prompt guard' },
  GUARD_FAILED: { status: 503, reason: 'Guardrail', text: 'prompt guard failed' },
  /** For logs only: MCP responses have a format of their own. */
  MCP_FAILED: { status: 500, reason: 'MCP', text: 'mcp request failed', detail: ': ' },
  INTERNAL: { status: 500, reason: 'Internal', text: 'internal error' },
} as const satisfies Readonly<Record<string, ErrorRow>>

/** Code of an error, a key of `errorTable`. */
export type ErrorCode = keyof typeof errorTable

/**
 * grpc-status of an error of the gateway by its HTTP status (traffic.md §6): more exact than that of a response without a grpc-status, because the
 * gateway knows the cause.
 */
export function grpcStatusOfError(status: number): number {
  switch (status) {
    case 408:
    case 504:
      return 4
    case 413:
    case 429:
    case 431:
      return 8
    case 499:
      return 1
    default:
      return grpcStatusOf(status)
  }
}

/** grpc-status for an HTTP status of a response that has none (gRPC, "HTTP to gRPC Status Code Mapping"). */
export function grpcStatusOf(status: number): number {
  switch (status) {
    case 400:
      return 13
    case 401:
    case 407:
      return 16
    case 403:
      return 7
    case 404:
      return 12
    case 429:
    case 502:
    case 503:
    case 504:
      return 14
    default:
      return 2
  }
}
