import { createServer, type AddressInfo } from 'node:net'
import { connect, type ConnectionOptions } from 'node:tls'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { parseClientHello } from './client-hello.ts'

/** The ClientHello of Node's TLS client. */
function captureHello(options: ConnectionOptions): Promise<Buffer> {
  return new Promise((resolve) => {
    const server = createServer((socket) => {
      socket.once('data', (chunk: Buffer) => {
        resolve(chunk)
        socket.destroy()
        server.close()
      })
    })
    server.listen(0, '127.0.0.1', () => {
      connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', ...options }).on('error', () => undefined)
    })
  })
}

/** The same message in records of `size` bytes. */
function fragment(hello: Buffer, size: number): Buffer {
  const message = hello.subarray(5)
  const records: Buffer[] = []
  for (let at = 0; at < message.length; at += size) {
    const part = message.subarray(at, at + size)
    records.push(Buffer.from([22, 3, 1, part.length >> 8, part.length & 0xff]), part)
  }
  return Buffer.concat(records)
}

let hello: Buffer
beforeAll(async () => {
  hello = await captureHello({ servername: 'A.example.com', ALPNProtocols: ['h2', 'http/1.1'] })
})

describe('parseClientHello', () => {
  const expected = { sni: 'a.example.com', alpn: ['h2', 'http/1.1'] }

  test('reads SNI in lower case and ALPN', () => {
    expect(parseClientHello(hello)).toEqual(expected)
  })

  test.each([{ minVersion: 'TLSv1.3' as const }, { maxVersion: 'TLSv1.2' as const }])(
    'reads the ClientHello without SNI and ALPN of a client with %j',
    async (options) => {
      expect(parseClientHello(await captureHello(options))).toEqual({ sni: undefined, alpn: [] })
    },
  )

  test('reports every proper prefix as incomplete', () => {
    for (let length = 0; length < hello.length; length++) expect(parseClientHello(hello.subarray(0, length))).toBe('incomplete')
  })

  test.each([1, 2, 3, 4, 5, 100])('reads a message in records of %i bytes', (size) => {
    const bytes = fragment(hello, size)
    expect(parseClientHello(bytes)).toEqual(expected)
    expect(parseClientHello(bytes.subarray(0, bytes.length - 1))).toBe('incomplete')
  })

  test('ignores bytes after the message', () => {
    expect(parseClientHello(Buffer.concat([hello, Buffer.from('more')]))).toEqual(expected)
  })

  const record = (...bytes: number[]): Buffer => Buffer.from([22, 3, 1, 0, bytes.length, ...bytes])
  const changed = (at: number, value: number): Buffer => {
    const copy = Buffer.from(hello)
    copy[at] = value
    return copy
  }
  test.each<[string, () => Buffer]>([
    ['another record type', () => changed(0, 23)],
    ['an SSL 2 version', () => changed(1, 2)],
    ['an empty record', () => record()],
    ['a record above the limit', () => Buffer.from([22, 3, 1, 0xff, 0xff])],
    ['another handshake message', () => record(2, 0, 0, 1, 0)],
    ['a message above the limit', () => record(1, 1, 0, 0)],
    ['a message that ends in the middle of a field', () => record(1, 0, 0, 3, 3, 3, 0)],
    ['extensions that are longer than the message', () => changed(9 + 34 + 1 + 32 + 1, 0xff)],
  ])('reports %s as invalid', (_, make) => {
    expect(parseClientHello(make())).toBe('invalid')
  })

  test('never throws on random changes', () => {
    let seed = 1
    const random = (below: number): number => (seed = (seed * 48_271) % 2_147_483_647) % below
    for (let round = 0; round < 3000; round++) {
      const copy = Buffer.from(hello)
      for (let change = 0; change <= round % 4; change++) copy[random(copy.length)] = random(256)
      const result = parseClientHello(copy)
      expect(typeof result === 'string' || Array.isArray(result.alpn)).toBe(true)
    }
  })
})
