import type { HttpChoice } from './destination.ts'
import { createHttp1Pool } from './http1/pool.ts'
import { createHttp2Pool } from './http2/pool.ts'
import { createNegotiatedPool } from './negotiated.ts'
import type { Transport, UpstreamPool } from './types.ts'

/** Creates the pool for an endpoint and an HTTP version. */
export function createPool(kind: HttpChoice, transport: Transport): UpstreamPool {
  switch (kind) {
    case 'http1':
      return createHttp1Pool(transport)
    case 'http2':
      return createHttp2Pool(transport)
    case 'negotiate':
      return createNegotiatedPool(transport)
  }
}
