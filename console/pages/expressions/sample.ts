import type { ExpressionSample } from '#api/management/expressions.ts'
import type { RequestRecord } from '#api/management/requests.ts'

export const defaultSample: ExpressionSample = {
  method: 'POST',
  url: 'https://shop.example/cart?item=7',
  version: 'HTTP/1.1',
  headers: [
    ['content-type', 'application/json'],
    ['x-user', 'alice'],
    ['cookie', 'session=abc; theme=dark'],
  ],
  body: '{"items": [{"name": "tea", "price": 4}]}',
  source: { address: '10.1.2.3', port: 51_000 },
  response: { code: 200, headers: [['content-type', 'application/json']], body: '{"ok": true}' },
  variables: { jwt: { sub: 'alice', groups: ['staff'] }, backend: { name: 'default/shop:80', type: 'service', protocol: 'http' } },
}

/** A sample with the values of a finished request. Bodies and tokens are not recorded; credentials in headers are redacted. */
export function toSample(record: RequestRecord): ExpressionSample {
  const { method, host, path, version, client, requestHeaders, responseHeaders, status, backend } = record
  const [, address = '127.0.0.1', port = '0'] = /^\[?([^\]]*?)\]?:(\d+)$/.exec(client) ?? []
  return {
    method,
    url: `http://${host}${path}`,
    version,
    headers: requestHeaders,
    body: '',
    source: { address, port: Number(port) },
    response: status === 0 ? null : { code: status, headers: responseHeaders, body: '' },
    variables: backend === null ? {} : { backend: { name: backend } },
  }
}
