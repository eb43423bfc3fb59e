import { afterEach, describe, expect, test } from '@jest/globals'
import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import type { AddressInfo, Server } from 'node:net'
import { gzipSync } from 'node:zlib'
import type { RemoteRequest } from '../model/translation.ts'
import { createDocumentFetch, createDocumentMemory, FetchedDocument } from './document.ts'

const text = '{"openapi":"3.1.0","paths":{}}'
const opened: Server[] = []
afterEach(async () => {
  await Promise.all(opened.splice(0).map((server) => new Promise((resolve) => server.close(resolve))))
})

async function start(listener: RequestListener): Promise<RemoteRequest> {
  const server = createServer(listener)
  opened.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return { id: 'id', url: { host: 'api.example', port, path: '/openapi.json' }, endpoints: [{ address: '127.0.0.1', port }], cacheMs: 1000 }
}

const fetchDocument = createDocumentFetch({ isLoopbackAllowed: true, times: { dialMs: 20_000, totalMs: 20_000 }, maxBytes: 1000 })
const never = new AbortController().signal

describe('the fetch of a document', () => {
  test.each<[sentence: string, listener: RequestListener, outcome: string]>([
    ['returns the bytes of JSON', (_, response) => response.end(text), text],
    ['returns the bytes of YAML', (_, response) => response.end('openapi: 3.0.3\npaths: {}\n'), 'openapi: 3.0.3\npaths: {}\n'],
    ['fails without text of a response that is no document', (_, response) => response.end('{"secret'), 'the response is neither JSON nor YAML'],
    ['fails for a response that is no object', (_, response) => response.end('secret'), 'the response is not usable: it is not an object'],
    ['fails for another JSON document', (_, response) => response.end('{"secret":1}'), 'the response is not usable: it has no field openapi'],
    [
      'fails for Swagger 2.0',
      (_, response) => response.end('{"swagger":"2.0"}'),
      'the response is not usable: it is of version 2.0; convert it to OpenAPI 3.0 or 3.1',
    ],
    ['follows no redirect', (_, response) => response.writeHead(302, { location: '/other' }).end(text), 'answered 302; redirects are not followed'],
    ['fails for the status 304 without a previous document', (_, response) => response.writeHead(304).end(), 'answered 304; redirects are not followed'],
    ['fails for a response over the limit', (_, response) => response.end(text.padEnd(1001)), 'the answer is longer than 1000 bytes'],
    [
      'fails if the response ends early',
      (_, response) => void response.writeHead(200, { 'content-length': 100 }).write(text, () => response.destroy()),
      'aborted',
    ],
  ])('%s', async (_, listener, outcome) => {
    const fetched = await fetchDocument(await start(listener), 0, never).catch((error: unknown) => (error as Error).message)
    expect(fetched instanceof FetchedDocument ? fetched.bytes.toString() : fetched).toBe(outcome)
  })

  test('returns a document that is compressed with gzip', async () => {
    const fetched = await fetchDocument(await start((_, response) => response.end(gzipSync(text))), 0, never)
    expect(fetched.bytes).toEqual(gzipSync(text))
  })

  test('refuses loopback addresses in a cluster', async () => {
    const source = await start((_, response) => response.end(text))
    await expect(createDocumentFetch({ isLoopbackAllowed: false })(source, 0, never)).rejects.toThrow('127.0.0.1 is a loopback address')
  })

  test('is conditional after the first response, and returns the previous document for 304', async () => {
    const requests: IncomingMessage['headers'][] = []
    const source = await start((request, response) => {
      requests.push(request.headers)
      if (request.headers['if-none-match'] === '"a"') response.writeHead(304).end()
      else response.writeHead(200, { etag: '"a"', 'last-modified': 'Mon, 01 Jan 2024 00:00:00 GMT' }).end(text)
    })
    const first = await fetchDocument(source, 0, never)
    expect(await fetchDocument(source, 0, never, first)).toBe(first)
    expect(requests.map((headers) => [headers['if-none-match'], headers['if-modified-since']])).toEqual([
      [undefined, undefined],
      ['"a"', 'Mon, 01 Jan 2024 00:00:00 GMT'],
    ])
  })

  test('returns the previous document for the same bytes with another validator', async () => {
    let count = 0
    const source = await start((_, response) => response.writeHead(200, { etag: `"${++count}"` }).end(text))
    const first = await fetchDocument(source, 0, never)
    expect(await fetchDocument(source, 0, never, first)).toBe(first)
    expect(first.etag).toBe('"2"')
  })

  test('sends no validator of excessive length', async () => {
    const seen: (string | undefined)[] = []
    const source = await start((request, response) => {
      seen.push(request.headers['if-none-match'])
      response.writeHead(200, { etag: `"${'a'.repeat(2000)}"` }).end(text)
    })
    await fetchDocument(source, 0, never, await fetchDocument(source, 0, never))
    expect(seen).toEqual([undefined, undefined])
  })
})

describe('the memory of documents', () => {
  const createTexts = (stored: Record<string, string>) => ({
    recall: (source: string) => stored[source],
    keep: (source: string, value: string) => void (stored[source] = value),
    forget: (source: string) => void delete stored[source],
  })

  test('returns what it stored, and stores it compressed', () => {
    const stored: Record<string, string> = {}
    const memory = createDocumentMemory(createTexts(stored))
    const large = Buffer.from(text + ' '.repeat(100_000))
    memory.keep('a', new FetchedDocument(large))
    expect(stored['a']?.length).toBeLessThan(1000)
    expect(memory.recall('a')?.bytes).toEqual(large)
    memory.forget('a')
    expect(memory.recall('a')).toBeUndefined()
  })

  test('does not store what exceeds a ConfigMap', () => {
    const stored: Record<string, string> = {}
    // Digests do not compress.
    const bytes = Buffer.concat(Array.from({ length: 30_000 }, (_, index) => createHash('sha256').update(String(index)).digest()))
    createDocumentMemory(createTexts(stored)).keep('a', new FetchedDocument(bytes))
    expect(stored).toEqual({})
  })

  test.each([
    ['no base64 of gzip', 'garbage'],
    ['no document', gzipSync('[]').toString('base64')],
  ])('throws for %s', (_, value) => expect(() => createDocumentMemory(createTexts({ a: value })).recall('a')).toThrow())
})
