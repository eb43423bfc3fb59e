import type { EchoRequest } from '../upstream/echo.ts'
import { startMockProvider } from './provider.ts'
import type { MockRequest } from './server.ts'

/** The mock of all LLM vendors as an upstream of examples; it records requests in the format of the echo upstream. */
export async function startLlmUpstream({ name, port }: { name: string; port: number }): Promise<{
  readonly name: string
  readonly port: number
  readonly requests: EchoRequest[]
  close(): Promise<void>
}> {
  const requests: EchoRequest[] = []
  const mock = await startMockProvider({ name, port, onRequest: (request) => void requests.push(toEchoRequest(name, request)) })
  return { name, port: mock.port, requests, close: () => mock.close() }
}

function toEchoRequest(name: string, { method, path, headers, raw }: MockRequest): EchoRequest {
  return {
    name,
    protocol: 'HTTP/1.1',
    method,
    path,
    host: headers['host'] ?? '',
    sourcePort: 0,
    headers,
    rawHeaders: Object.entries(headers),
    bodyBytes: raw.length,
    body: raw.toString(),
    trailers: {},
  }
}
