import type { ProxyError } from '../../../request/exchange/error.ts'
import { UpstreamError } from '../../../net/upstream/types.ts'
import { FormatError, type Target } from '../common/types.ts'
import { HeaderList } from '../../../http/headers.ts'
import { causeOf } from './index.ts'
import type { Verdict } from './types.ts'

const endpoint = (cause: Verdict['cause']): Verdict => ({ cause, scope: 'endpoint' })
const none = new HeaderList([])

/** Why a target failed without an error response: by the gateway's error. undefined: the failure is not one of the target. */
export function causeOfError(target: Target, error: ProxyError, epochMs: number): Verdict | undefined {
  const { code, cause } = error
  switch (code) {
    case 'UPSTREAM_TIMEOUT':
      return endpoint('Timeout')
    case 'DNS_FAILED':
    case 'UPSTREAM_DENIED':
    case 'NO_HEALTHY_BACKENDS':
      return endpoint('Unreachable')
    // Clients that hold connections must not evict a provider.
    case 'CONNECTION_LIMIT':
      return { cause: 'Unreachable', scope: 'request' }
    case 'UPSTREAM_FAILED':
      return endpoint(cause instanceof UpstreamError && cause.failure !== 'connect' ? 'ServerError' : 'Unreachable')
    case 'LLM_RESPONSE':
      return cause instanceof FormatError && cause.received !== undefined ? causeOf(target, 200, none, cause.received, epochMs) : endpoint('ServerError')
    case 'BACKEND_AUTH':
      return { cause: 'Auth', scope: 'credential' }
    case 'BUDGET':
    case 'BUDGET_SHARE':
      return { cause: 'Budget', scope: 'request' }
    default:
      return undefined
  }
}
