import type { RouteType } from '#gen/config/types.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { printJson } from './common/json.ts'

/** Routes whose errors have the shape of Anthropic's API. */
const messagesRoutes: readonly RouteType[] = ['Messages', 'TokenCount']
const errorTypeByStatus: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
}

/**
 * Sets the format of the gateway's own errors to the client's, if the client accepts JSON as the vendors' SDKs do. Other clients
 * receive text (llm.md §10).
 */
export function setErrorFormat(exchange: Exchange, route: RouteType): void {
  if (route === 'Passthrough' || route === 'Realtime') return
  if (!/\bapplication\/json\b/i.test(exchange.request.headers.get('accept') ?? '')) return
  exchange.errorFormat = (status, message) => ({
    contentType: 'application/json',
    body: printJson(
      messagesRoutes.includes(route)
        ? { type: 'error', error: { type: typeOf(status), message } }
        : { error: { message, type: typeOf(status), param: null, code: null } },
    ),
  })
}

const typeOf = (status: number): string => errorTypeByStatus[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error')
