import { Exchange, type Connection } from '../request/exchange/exchange.ts'
import { HeaderList } from '../http/headers.ts'
import type { RequestHead } from '../http/message.ts'

/** A GET of http://example.com/ without headers. `change` overrides members. */
export function testRequest(change: Partial<RequestHead> = {}, headers: Readonly<Record<string, string>> = {}): RequestHead {
  return {
    method: 'GET',
    target: '/',
    scheme: 'http',
    authority: 'example.com',
    version: 'HTTP/1.1',
    headers: HeaderList.from(Object.entries(headers)),
    body: undefined,
    upgrade: undefined,
    acceptsTrailers: false,
    ...change,
  }
}

export const testConnection: Connection = {
  id: 1,
  bind: 'test',
  localAddress: '127.0.0.1',
  localPort: 80,
  remoteAddress: '127.0.0.1',
  remotePort: 40000,
  tls: undefined,
  listener: undefined,
}

export function testExchange(change: Partial<RequestHead> = {}, headers: Readonly<Record<string, string>> = {}): Exchange {
  return new Exchange(testConnection, testRequest(change, headers), 0)
}
