import type { BandwidthLimit } from '#gen/config/types.ts'
import { withSides, type Policy } from '../../request/exchange/context.ts'
import type { PolicyState } from '../state.ts'
import { ThrottledBody } from './body.ts'
import { Rate } from './rate.ts'

/**
 * Limits the bytes per second of bodies (traffic.md §8.21), for each target of the policy or each request. Tunnels of upgrades are not limited.
 *
 * @example
 * traffic:
 *   bandwidthLimit:
 *     response: { bytesPerSecond: 1048576 }
 *     scope: Request
 */
export function compileBandwidthLimit(section: BandwidthLimit, { kept, monotonicMs }: Pick<PolicyState, 'kept' | 'monotonicMs'>): Policy {
  const { request, response, scope } = section
  const create = () => ({
    request: request && new Rate(request.bytesPerSecond, monotonicMs),
    response: response && new Rate(response.bytesPerSecond, monotonicMs),
  })
  const shared = kept.get(section, [], create)
  const rates = scope === 'Request' ? create : () => shared
  return withSides<ReturnType<typeof create>>({
    request({ request: message }) {
      const all = rates()
      if (all.request !== undefined && message.body !== undefined && message.upgrade === undefined) message.body = new ThrottledBody(message.body, all.request)
      return all
    },
    response({ response: message }, { response: rate }) {
      if (rate !== undefined && message?.body !== undefined && message.upgraded === undefined) message.body = new ThrottledBody(message.body, rate)
    },
  })
}
