import type { HeaderModifier } from '#gen/config/types.ts'
import type { Policy } from '../../context.ts'
import { applyHeaderModifiers } from './apply.ts'

export interface HeaderModifiersConfig {
  readonly request?: readonly HeaderModifier[] | undefined
  readonly response?: readonly HeaderModifier[] | undefined
}

/** Fixed changes to request and response heads, locally made responses included (traffic.md §8.11). Undefined: nothing to do. */
export function compileHeaderModifiers({ request = [], response = [] }: HeaderModifiersConfig): Policy | undefined {
  const editRequest: Policy = (c, next) => {
    const { exchange } = c.var
    if (applyHeaderModifiers(exchange.request.headers, request, exchange.request).isAuthoritySet) exchange.isAuthorityFixed = true
    return next()
  }
  if (response.length === 0) return request.length === 0 ? undefined : editRequest
  return async (c, next) => {
    if (request.length === 0) await next()
    else await editRequest(c, next)
    const head = c.var.exchange.response
    if (head !== undefined) applyHeaderModifiers(head.headers, response)
  }
}

/** Applies the response filters of the backendRef that was chosen. */
export const modifyBackendResponse: Policy = async (c, next) => {
  await next()
  const { response, backendResponseHeaders } = c.var.exchange
  if (response !== undefined && backendResponseHeaders !== undefined) applyHeaderModifiers(response.headers, backendResponseHeaders)
}
