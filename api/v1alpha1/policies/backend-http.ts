import { choice, object, type Definitions } from '../../schema.ts'
import { duration } from '../shared.ts'

export const backendHttpDefinitions: Definitions = {
  BackendHTTP: object('HTTP settings of requests to the backend.', {
    version: choice(
      ['HTTP1', 'HTTP2'],
      'HTTP version. Default: what appProtocol of the Service port says; HTTP2 for gRPC; the version of the client when it came in plaintext; HTTP1 when it came over TLS.',
    ),
    requestTimeout: duration('Time for one attempt until the response head; then it fails with 504 and may be retried.', 1),
  }),
}
