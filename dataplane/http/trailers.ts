import { HeaderList, toDashes } from './headers.ts'
import { isForwardingHeader, isOwnHeader } from './own-headers.ts'

/**
 * Fields that are not allowed in trailers (RFC 9110 §6.5.1): framing, routing, authentication, content, request modifiers, and fields of one
 * connection. Receivers that merge trailers into the head would otherwise apply them.
 */
const forbidden: ReadonlySet<string> = new Set(
  `content-length content-encoding content-type content-range host authorization proxy-authorization www-authenticate proxy-authenticate
  set-cookie cookie cache-control age expires date location retry-after vary warning max-forwards pragma range
  if-match if-none-match if-modified-since if-unmodified-since if-range
  connection keep-alive proxy-connection te trailer transfer-encoding upgrade expect`.split(/\s+/),
)

/** The outcome of a gRPC call, which policies may write into heads too. */
const grpcFields: ReadonlySet<string> = new Set(['grpc-status', 'grpc-message', 'grpc-status-details-bin'])

/** Whether a field (lower case) is not allowed in trailers, in any spelling with underscores; headers of the gateway are not, too. */
export function isForbiddenTrailer(name: string): boolean {
  return forbidden.has(toDashes(name)) || isOwnHeader(name) || isForwardingHeader(name)
}

/**
 * The trailers to send after a head with these headers: without forbidden fields, and without fields that a policy set or removed in the head
 * unless a policy set them in the trailers too. Undefined if none is left.
 */
export function trailersAfter(headers: HeaderList, trailers: HeaderList | undefined): HeaderList | undefined {
  if (trailers === undefined) return undefined
  const kept = new HeaderList()
  for (const [name, value] of trailers) {
    if (isForbiddenTrailer(name)) continue
    if (grpcFields.has(name) || !headers.isChanged(name) || trailers.isChanged(name)) kept.append(name, value)
  }
  return kept.raw.length === 0 ? undefined : kept
}
