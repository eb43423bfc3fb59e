import type { HeaderModifier } from '#gen/config/types.ts'
import { withSides, type Policy } from '../../request/exchange/context.ts'
import { applyEdits, applyHeaderModifiers, compileEdits } from './apply.ts'

/** Modifiers of requests and responses, in order of application. */
export interface HeaderModifiersConfig {
  readonly request?: readonly HeaderModifier[] | undefined
  readonly response?: readonly HeaderModifier[] | undefined
}

/**
 * Adds, sets and removes headers of requests and responses, responses of the gateway itself included (traffic.md §8.11). Values are fixed;
 * `transformation` computes them. Returns undefined if there are no changes.
 *
 * @throws ProxyError FILTER_FAILED (500), for invalid names and values.
 * @example
 * traffic:
 *   headerModifiers:
 *     request:
 *       remove: [x-internal]
 *     response:
 *       set:
 *         - name: retry-after
 *           value: '3600'
 */
export function compileHeaderModifiers({ request = [], response = [] }: HeaderModifiersConfig): Policy | undefined {
  if (request.length === 0 && response.length === 0) return undefined
  const [onRequest, onResponse] = [compileEdits(request), compileEdits(response)]
  return withSides({
    ...(request.length > 0 && {
      request(exchange) {
        if (applyEdits(exchange.request.headers, onRequest, exchange.request)) exchange.isAuthorityFixed = true
      },
    }),
    ...(response.length > 0 && {
      response(exchange) {
        if (exchange.response !== undefined) applyEdits(exchange.response.headers, onResponse)
      },
    }),
  })
}

/** Applies the response filters of the chosen backendRef. */
export const modifyBackendResponse: Policy = withSides({
  response({ response, backendResponseHeaders }) {
    if (response !== undefined && backendResponseHeaders !== undefined) applyHeaderModifiers(response.headers, backendResponseHeaders)
  },
})
