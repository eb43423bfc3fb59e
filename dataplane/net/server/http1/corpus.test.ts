import { duplexPair, type Duplex } from 'node:stream'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { OnRequest } from '../../../request/exchange/exchange.ts'
import { BufferBody, readBody } from '../../../http/body.ts'
import type { DownstreamCase } from '../../../http/corpus/case.ts'
import { downstreamCases } from '../../../http/corpus/downstream.ts'
import { HeaderList } from '../../../http/headers.ts'
import { testConnection } from '../../../testing/exchange.ts'
import { serveHttp1 } from './connection.ts'
import { listen, sendRaw } from './testing.ts'
import { createServer, type Server } from 'node:net'

const probe = 'GET /probe HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n\r\n'

/** Answers every request with its number and keeps what it saw. */
function record(seen: string[]): OnRequest {
  return async (exchange) => {
    const { method, authority, target, body } = exchange.request
    const { bytes, trailers } = await readBody(body, 1e6)
    const fields = [...(trailers ?? [])].map(([name, value]) => ` ${name}: ${value}`)
    seen.push(`${method} ${authority} ${target} ${bytes.toString('latin1')}${fields.join('')}`.trimEnd())
    exchange.response = { status: 200, headers: new HeaderList(), body: new BufferBody(`answer ${seen.length}\n`), upgraded: undefined }
  }
}

function check(one: DownstreamCase, seen: readonly string[], text: string, isClosed: boolean): void {
  const served = (one.served ?? []).map((request) => request.trimEnd())
  const goesOn = one.refused === undefined && one.isClosed === undefined
  expect(seen).toEqual(goesOn ? [...served, 'GET probe /probe'] : served)
  const statuses = [...text.matchAll(/^HTTP\/1\.1 ([0-9]{3}) /gm)].map(([, status]) => Number(status))
  expect(statuses).toEqual([...seen.map(() => 200), ...(one.refused === undefined ? [] : [one.refused])])
  expect(isClosed).toBe(true)
}

describe('the corpus of hostile requests over a socket', () => {
  let server: Server
  let port = 0
  let seen: string[] = []
  beforeAll(async () => {
    server = createServer((socket) => {
      serveHttp1(socket, { connection: testConnection, onRequest: record(seen), onFinish: () => undefined })
    })
    port = await listen(server)
  })
  afterAll(() => new Promise((resolve) => server.close(resolve)))

  test.each(downstreamCases.map((one) => [one.name, one] as const))('has the required outcome for %s', async (_, one) => {
    seen = []
    const { text, isClosed } = await sendRaw(port, [one.bytes + probe])
    check(one, seen, text, isClosed)
  })
})

describe('the corpus of hostile requests byte by byte', () => {
  test.each(downstreamCases.filter(({ bytes }) => bytes.length < 2000).map((one) => [one.name, one] as const))(
    'has the required outcome for %s',
    async (_, one) => {
      const seen: string[] = []
      const [client, socket] = duplexPair()
      serveHttp1(socket, { connection: testConnection, onRequest: record(seen), onFinish: () => undefined })
      const answer = readAll(client)
      for (const byte of Buffer.from(one.bytes + probe, 'latin1')) {
        if (socket.destroyed || client.readableEnded) break
        client.write(Buffer.of(byte))
      }
      const text = await answer
      client.destroy()
      socket.destroy()
      check(one, seen, text, true)
    },
  )
})

function readAll(duplex: Duplex): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    duplex.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
    duplex.on('end', () => resolve(text))
    duplex.on('error', reject)
  })
}

test('the corpus has at least 80 cases with unique names', () => {
  expect(downstreamCases.length).toBeGreaterThanOrEqual(80)
  expect(new Set(downstreamCases.map(({ name }) => name)).size).toBe(downstreamCases.length)
})
