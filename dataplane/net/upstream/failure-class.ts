import { UpstreamError, type UpstreamFailure } from './types.ts'

const classes: Readonly<Record<UpstreamFailure, string>> = {
  connect: 'connection failed',
  'connect-timeout': 'timeout',
  dns: 'name resolution failed',
  reset: 'connection reset',
  protocol: 'protocol error',
  forbidden: 'destination not allowed',
  limit: 'too many connections',
  denied: 'address not allowed',
  upgrade: 'protocol not switched as requested',
  cancelled: 'cancelled',
}

/** Classes of errors of the operating system while a connection is established. */
const connectClasses: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset',
  EPIPE: 'connection reset',
  EHOSTUNREACH: 'host unreachable',
  ENETUNREACH: 'host unreachable',
  ETIMEDOUT: 'timeout',
}

/** Codes of Node and OpenSSL for handshakes that fail and certificates that are not accepted. */
const tlsCode = /^(?:ERR_(?:TLS|SSL|OSSL)_|CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|EPROTO$|HOSTNAME_MISMATCH$|INVALID_(?:CA|PURPOSE)$|PATH_LENGTH_)/

/**
 * The class of a failed call or body: all that clients may learn about it. The message of the error has addresses and names of upstreams; logs
 * have it because the error is passed on as `cause`. Undefined if the error is not one of an upstream.
 */
export function failureClass(error: unknown): string | undefined {
  if (!(error instanceof UpstreamError)) return undefined
  const code = codeOf(error)
  if (error.failure === 'connect' && code !== undefined) {
    const found = connectClasses[code] ?? (tlsCode.test(code) ? 'TLS handshake failed' : undefined)
    if (found !== undefined) return found
  }
  return classes[error.failure]
}

/** The code of the first cause that has one. */
function codeOf(error: Error): string | undefined {
  let cause = error.cause as { readonly code?: unknown; readonly cause?: unknown } | undefined
  for (let depth = 0; typeof cause === 'object' && cause !== null && depth < 5; depth++) {
    if (typeof cause.code === 'string') return cause.code
    cause = cause.cause as typeof cause
  }
  return undefined
}
