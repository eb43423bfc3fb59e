import { duplexPair } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import { readBody } from './body.ts'
import { cutAt, cuts, validRequest, validResponse } from './corpus/arbitrary.ts'
import { parseResponseHead } from './http1/head.ts'
import { HeaderList } from './headers.ts'
import { IncomingBody, type BodyOwner } from './http1/incoming.ts'
import { responseHeadLimits } from './syntax.ts'
import { serveHttp1 } from '../net/server/http1/connection.ts'
import { testConnection } from '../testing/exchange.ts'

test('the parser reads pipelined requests equally however the bytes are split', async () => {
  const scenario = fc.array(validRequest, { minLength: 1, maxLength: 3 }).chain((requests) => {
    const bytes = requests.map((request) => request.bytes).join('')
    return fc.record({ requests: fc.constant(requests), pieces: cuts(bytes.length).map((places) => cutAt(bytes, places)) })
  })
  await fc.assert(
    fc.asyncProperty(scenario, async ({ requests, pieces }) => {
      const seen: unknown[] = []
      const [client, socket] = duplexPair()
      serveHttp1(socket, {
        connection: testConnection,
        onFinish: () => undefined,
        onRequest: async (exchange) => {
          const { method, target, body, headers } = exchange.request
          headers.remove('content-length')
          const { bytes, trailers } = await readBody(body, 1e6)
          seen.push({ method, target, fields: [...headers], body: bytes.toString('latin1'), trailers: [...(trailers ?? [])] })
          exchange.response = { status: 204, headers: new HeaderList(), body: undefined, upgraded: undefined }
        },
      })
      client.resume()
      for (const piece of pieces) {
        client.write(piece)
        await nextTurn()
      }
      for (let turn = 0; turn < 50 && seen.length < requests.length; turn++) await nextTurn()
      client.destroy()
      socket.destroy()
      expect(seen).toEqual(requests.map(({ method, target, fields, body, trailers }) => ({ method, target, fields, body, trailers })))
    }),
    { numRuns: 300 },
  )
})

test('the parser reads response bodies equally however the bytes are split', () => {
  const scenario = validResponse.chain((response) => fc.record({ response: fc.constant(response), places: cuts(response.bytes.length) }))
  fc.assert(
    fc.property(scenario, ({ response, places }) => {
      const end = response.bytes.indexOf('\r\n\r\n') + 4
      const head = parseResponseHead(response.bytes, end - 2, 'GET', responseHeadLimits)
      expect(head.status).toBe(response.status)
      head.headers.remove('content-length')
      expect([...head.headers]).toEqual(response.fields)
      if (head.framing === 0) return
      let rest: Buffer | undefined
      const owner: BodyOwner = {
        startBody: () => undefined,
        pauseBody: () => undefined,
        resumeBody: () => undefined,
        cancelBody: () => undefined,
        endBody: (bytes) => (rest = bytes),
      }
      const body = new IncomingBody(head.framing, owner, responseHeadLimits)
      const chunks: Buffer[] = []
      let trailers: HeaderList | undefined
      body.start({ onData: (chunk) => chunks.push(chunk), onEnd: (last) => (trailers = last), onError: (error) => expect(error).toBeUndefined() })
      const pieces = cutAt(
        `${response.bytes.slice(end)}next`,
        places.filter((place) => place > end).map((place) => place - end),
      )
      for (const piece of pieces) if (!body.isOver) body.feed(piece)
      expect({ body: Buffer.concat(chunks).toString('latin1'), trailers: [...(trailers ?? [])] }).toEqual({ body: response.body, trailers: response.trailers })
      expect(body.state).toBe('ended')
      expect(rest?.toString('latin1')).toMatch(/^n?e?x?t?$|next$/)
    }),
    { numRuns: 500 },
  )
})
