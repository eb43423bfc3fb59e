import type { Compression } from '#gen/config/types.ts'
import { withSides, type Policy } from '../../request/exchange/context.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { contentCoding, describeNewBody, preferredCoding } from '../../http/coding.ts'
import { canEncode, EncodedBody, type ContentCoding } from '../../http/encoded.ts'
import { addVary } from '../../http/headers.ts'
import type { ResponseHead } from '../../http/message.ts'

const textTypes = `text/html text/css text/plain text/xml text/javascript
  application/javascript application/json application/xml application/xhtml+xml image/svg+xml`.split(/\s+/)
const VARY = ['Accept-Encoding'] as const

/**
 * Compresses responses for clients that accept it (traffic.md §8.16). A response that already has a coding, that is partial or that forbids
 * transformation stays as it is. Encoders run in threads; a response beyond their number is sent as it is.
 *
 * @example
 * traffic:
 *   compression:
 *     algorithms: [br, gzip]
 *     contentTypes: [text/html, application/json]
 */
export function compileCompression({ algorithms = ['zstd', 'br', 'gzip'], contentTypes = textTypes, minContentLength = 1024 }: Compression): Policy {
  const types = new Set(contentTypes.map((type) => type.toLowerCase()))
  return withSides({
    response({ request, response }: Exchange) {
      if (response?.body === undefined || !mayCompress(response, request.method)) return
      const type = mediaTypeOf(response)
      // Only a name of its own selects event streams, whose events must not wait, and nothing selects gRPC, which has codings of its own.
      if (type.startsWith('application/grpc') || !(types.has(type) || (type !== EVENTS && types.has(type.replace(/\/.*/, '/*'))))) return
      if (response.body.length !== undefined && response.body.length < minContentLength) return
      const { headers } = response
      addVary(headers, VARY)
      const coding = preferredCoding(request.headers.has('accept-encoding') ? request.headers.getAll('accept-encoding').join(',') : undefined, algorithms)
      if (coding === undefined || !canEncode()) return
      response.body = new EncodedBody(response.body, coding as ContentCoding)
      describeNewBody(headers)
      headers.set('content-encoding', coding)
      headers.remove('accept-ranges')
    },
  })
}

const EVENTS = 'text/event-stream'

function mayCompress({ status, headers, upgraded }: ResponseHead, method: string): boolean {
  if (method === 'HEAD' || upgraded !== undefined || status < 200 || status === 204 || status === 205 || status === 206 || status === 304) return false
  if (contentCoding(headers) !== undefined || headers.has('content-range')) return false
  return !headers.getAll('cache-control').some((value) => /(?:^|,)\s*no-transform\s*(?:,|$)/i.test(value))
}

function mediaTypeOf({ headers }: ResponseHead): string {
  const field = headers.get('content-type') ?? ''
  const end = field.indexOf(';')
  return (end === -1 ? field : field.slice(0, end)).trim().toLowerCase()
}
