import { request as nodeRequest } from 'node:http'
import { createServer, type Server } from 'node:net'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import { readBody } from '../../../http/body.ts'
import { validResponse } from '../../../http/corpus/arbitrary.ts'
import { listen } from '../../server/http1/testing.ts'
import { createHttp1Pool } from './pool.ts'
import { testRequest } from './testing.ts'

/** The response as a client reads it; undefined if the client rejects it or the body fails. */
interface Reading {
  readonly status: number
  readonly fields: readonly string[]
  readonly body: string
  readonly trailers: readonly string[]
}

// The server sends the current bytes on each connection and closes it.
let bytes = ''
let server: Server
let port = 0
beforeAll(async () => {
  server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => undefined)
    socket.once('data', () => socket.end(Buffer.from(bytes, 'latin1')))
    socket.resume()
  })
  port = await listen(server)
})
afterAll(() => new Promise((resolve) => server.close(resolve)))

const hopByHop = new Set([
  'connection',
  'keep-alive',
  'transfer-encoding',
  'content-length',
  'trailer',
  'te',
  'upgrade',
  'proxy-connection',
  'proxy-authenticate',
  'host',
  'expect',
])
const endToEnd = (raw: readonly string[]): string[] =>
  raw.flatMap((name, index) =>
    index % 2 === 0 && !hopByHop.has(name.toLowerCase()) ? [`${name.toLowerCase()}: ${(raw[index + 1] ?? '').replace(/[ \t]+$/, '')}`] : [],
  )

async function readOurs(): Promise<Reading | undefined> {
  const pool = createHttp1Pool({ host: '127.0.0.1', port, tls: undefined, keepAlive: undefined })
  try {
    const { status, headers, body } = await pool.call(testRequest(), { connectMs: 60_000 }).response
    const { bytes: read, trailers } = await readBody(body, 1e6)
    return { status, fields: endToEnd(headers.raw), body: read.toString('latin1'), trailers: endToEnd(trailers?.raw ?? []) }
  } catch {
    return undefined
  }
}

function readNode(): Promise<Reading | undefined> {
  return new Promise((resolve) => {
    const request = nodeRequest({ port, host: '127.0.0.1', agent: false, headers: { host: 'a' } }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', () => resolve(undefined))
      response.on('close', () => {
        if (!response.complete) return resolve(undefined)
        const { statusCode = 0, rawHeaders, rawTrailers } = response
        resolve({ status: statusCode, fields: endToEnd(rawHeaders), body: Buffer.concat(chunks).toString('latin1'), trailers: endToEnd(rawTrailers) })
      })
    })
    request.on('error', () => resolve(undefined))
    request.on('upgrade', (_, socket) => {
      socket.destroy()
      resolve(undefined)
    })
    request.end()
  })
}

test('valid responses are read as Node reads them and as they were generated', async () => {
  await fc.assert(
    fc.asyncProperty(validResponse, async (response) => {
      bytes = response.bytes
      const [ours, node] = await Promise.all([readOurs(), readNode()])
      expect(ours).toEqual({
        status: response.status,
        fields: response.fields.map(([name, value]) => `${name}: ${value}`),
        body: response.body,
        trailers: response.trailers.map(([name, value]) => `${name}: ${value}`),
      })
      expect(ours).toEqual(node)
    }),
    { numRuns: 200 },
  )
})

// Bytes with a meaning for parsers, to be inserted at random positions.
const poison = fc.constantFrom(
  '\r',
  '\n',
  '\r\n',
  '\0',
  ' ',
  '\t',
  ':',
  ';',
  ',',
  '0',
  '5',
  'f',
  '-',
  '+',
  'Content-Length: 3\r\n',
  'Transfer-Encoding: chunked\r\n',
  'HTTP/1.1',
  '\x7f',
  '\xff',
  'X-A: b\r\n',
)
const mutated = validResponse.chain(({ bytes: valid }) =>
  fc
    .array(fc.record({ at: fc.nat(valid.length), cut: fc.nat(3), insert: fc.oneof(poison, fc.constant('')) }), { minLength: 1, maxLength: 2 })
    .map((edits) => edits.reduce((text, { at, cut, insert }) => text.slice(0, at) + insert + text.slice(at + cut), valid)),
)

test('damaged responses that both we and Node accept are read equally', async () => {
  let accepted = 0
  await fc.assert(
    fc.asyncProperty(mutated, async (damaged) => {
      bytes = damaged
      const [ours, node] = await Promise.all([readOurs(), readNode()])
      // Node also rejects surplus bytes, which we reject when the connection is idle.
      if (ours === undefined || node === undefined) return
      accepted++
      expect(ours).toEqual(node)
    }),
    { numRuns: 500 },
  )
  expect(accepted).toBeGreaterThan(20)
})
