import type { RouteType } from '#gen/config/types.ts'
import type { ErrorFormat, ProxyError } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { isGoogleRequest } from './request/models.ts'
import type { RequestHead } from '../../http/message.ts'
import { writeGoogleError } from './common/google-status.ts'
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

/** Sets the format of the gateway's own errors to the one of the route that the provider's settings choose (llm.md §10). */
export function setErrorFormat(exchange: Exchange, route: RouteType): void {
  exchange.errorFormat = errorFormatOf(() => route)
}

/**
 * The format of the client, if the client accepts JSON as the vendors' SDKs do. Other clients receive text (llm.md §10). `routeOf` is called when there is an
 * error, so that a request without one costs nothing.
 */
export function errorFormatOf(routeOf: (request: RequestHead) => RouteType): ErrorFormat {
  return (error, message, request) => {
    const route = routeOf(request)
    if (route === 'Passthrough' || route === 'Realtime') return undefined
    // Clients of Google send `*/*`.
    const isGoogle = route === 'Gemini' || (route === 'Models' && isGoogleRequest(request))
    if (!isGoogle && !/\bapplication\/json\b/i.test(request.headers.get('accept') ?? '')) return undefined
    const { status } = error.row
    const text = `${message}${waitOf(error)}`
    return {
      contentType: 'application/json',
      body: printJson(
        isGoogle
          ? writeGoogleError(status, text)
          : messagesRoutes.includes(route)
            ? { type: 'error', error: { type: typeOf(status), message: text } }
            : { error: { message: text, type: typeOf(status), ...placeOf(error) } },
      ),
    }
  }
}

/** Members of an error of OpenAI that name what is wrong. */
const placeOf = ({ code }: ProxyError): object => (code === 'LLM_MODEL_NOT_FOUND' ? { param: 'model', code: 'model_not_found' } : { param: null, code: null })

const typeOf = (status: number): string => errorTypeByStatus[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error')

/** When an exhausted rate limit admits requests again. The text of a budget says it already. */
function waitOf({ code, headers }: ProxyError): string {
  const seconds = headers['x-ratelimit-reset']
  return code === 'RATE_LIMIT' && seconds !== undefined && /^\d+$/.test(seconds) ? `, retry in ${seconds} s` : ''
}
