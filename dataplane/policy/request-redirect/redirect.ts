import type { PathMatch, RequestRedirect } from '#gen/config/types.ts'
import { HeaderList } from '../../http/headers.ts'
import { hostOf, portOf, type RequestHead, type ResponseHead } from '../../http/message.ts'
import { rewritePath } from '../path.ts'

const defaultPorts = { http: 80, https: 443 } as const

/** The Location of a redirect filter (traffic.md §7). `match` is the path condition of the matched rule. */
export function locationOf(request: RequestHead, filter: RequestRedirect, match: PathMatch | undefined): string {
  const scheme = filter.scheme ?? request.scheme
  const host = filter.hostname ?? hostOf(request.authority)
  // A configured scheme implies its default port. Without one, the port of the request is kept.
  const port = filter.port ?? (filter.scheme === undefined ? portOf(request.authority) : undefined)
  const target = filter.path === undefined ? request.target : rewritePath(request.target, filter.path, match)
  const suffix = port === undefined || port === defaultPorts[scheme] ? '' : `:${port}`
  return `${scheme}://${host}${suffix}${target.startsWith('/') ? target : '/'}`
}

/** The response of a redirect filter, for callers outside of a policy chain. Throws FILTER_FAILED like `rewritePath`. */
export function redirectTo(request: RequestHead, filter: RequestRedirect, match: PathMatch | undefined): ResponseHead {
  const headers = new HeaderList(['location', locationOf(request, filter, match), 'content-length', '0'])
  return { status: filter.statusCode ?? 302, headers, body: undefined, upgraded: undefined }
}
