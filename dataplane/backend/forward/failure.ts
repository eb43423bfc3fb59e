import { ProxyError, toProxyError } from '../../request/exchange/error.ts'
import { failureClass } from '../../net/upstream/failure-class.ts'
import { UpstreamError } from '../../net/upstream/types.ts'

/**
 * The error that a failed call to an upstream is reported as (traffic.md §6): clients get the class of the failure, logs its cause. Anything but a ProxyError or an UpstreamError is INTERNAL.
 */
export function toProxyFailure(error: unknown): ProxyError {
  if (!(error instanceof UpstreamError)) return toProxyError(error)
  // The gateway rejected the body of the request while it was sent.
  if (error.cause instanceof ProxyError) return error.cause
  switch (error.failure) {
    case 'connect-timeout':
      return new ProxyError('UPSTREAM_TIMEOUT', { cause: error })
    case 'dns':
      return new ProxyError('DNS_FAILED', { cause: error })
    case 'forbidden':
      return new ProxyError('DESTINATION_DENIED', { detail: error.message, cause: error })
    case 'limit':
      return new ProxyError('CONNECTION_LIMIT', { cause: error })
    case 'denied':
      return new ProxyError('UPSTREAM_DENIED', { cause: error })
    case 'upgrade':
      return new ProxyError('UPGRADE_FAILED', { detail: failureClass(error), cause: error })
    case 'connect':
    case 'reset':
    case 'protocol':
    case 'cancelled':
      return new ProxyError('UPSTREAM_FAILED', { detail: failureClass(error), cause: error })
  }
}
