import { choice, object, type Definitions } from '../../schema.ts'
import { duration } from '../shared.ts'

export const backendHttpDefinitions: Definitions = {
  BackendHTTP: object('HTTP settings of requests to the backend.', {
    version: choice(
      ['HTTP1', 'HTTP2'],
      'HTTP version. Default: that of appProtocol of the Service port; HTTP2 for gRPC; the version of the client for plaintext requests; HTTP1 for requests over TLS.',
    ),
    requestTimeout: duration(
      'Time for one attempt until the response head, or until the first content of a streamed response of an LLM; then it fails with 504 and may be retried.',
      1,
    ),
  }),
}
