import { createServer as createHttp1Server } from 'node:http'
import { createServer as createHttp2Server, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo, Server } from 'node:net'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, test } from '@jest/globals'
import { createHttp1Pool } from '../upstream/http1.ts'
import { createHttp2Pool } from '../upstream/http2.ts'
import type { Transport } from '../upstream/types.ts'
import { forwardTo, openHttp2, startBind, until } from './testing.ts'

const MIB = 1024 * 1024
const size = 64 * MIB
/** What may be in flight: windows, kernel buffers and one write on each of the two hops. */
const inFlight = 16 * MIB

const open: (() => unknown)[] = []
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close()
})

const chunk = Buffer.alloc(65_536, 'x')
/** Writes `size` bytes as fast as they are taken. */
function pour(to: Writable): { written: number } {
  const progress = { written: 0 }
  const more = (): void => {
    while (progress.written < size && !to.destroyed) {
      progress.written += chunk.length
      if (!to.write(chunk)) return void to.once('drain', more)
    }
    to.end()
  }
  more()
  return progress
}

/** Takes nothing for a while, then all. */
async function drainLate(from: Readable, whilePaused: () => void): Promise<number> {
  from.pause()
  await sleep(300)
  whilePaused()
  let received = 0
  from.on('data', (data: Buffer) => (received += data.length))
  from.resume()
  await new Promise((resolve) => from.on('end', resolve))
  return received
}

type Serve = (request: Readable, response: Writable) => void

async function startUpstream(protocol: 'http1' | 'http2', serve: Serve): Promise<ReturnType<typeof createHttp1Pool>> {
  const server: Server =
    protocol === 'http1'
      ? createHttp1Server((request, response) => serve(request, response))
      : createHttp2Server().on('stream', (stream: ServerHttp2Stream) => {
          stream.on('error', () => undefined)
          stream.respond()
          serve(stream, stream)
        })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  open.push(() => void server.close())
  const transport: Transport = { host: '127.0.0.1', port: (server.address() as AddressInfo).port, tls: undefined, keepAlive: undefined }
  const pool = protocol === 'http1' ? createHttp1Pool(transport) : createHttp2Pool(transport)
  open.push(() => pool.close())
  return pool
}

describe.each(['http1', 'http2'] as const)('HTTP/2 client, %s upstream', (protocol) => {
  test('64 MiB up to an upstream that is slow to read', async () => {
    let received: Promise<number> | undefined
    let progress = { written: 0 }
    let ahead = 0
    const pool = await startUpstream(protocol, (request, response) => {
      received = drainLate(request, () => (ahead = progress.written))
      void received.then(() => response.end('done'))
    })
    const server = await startBind(forwardTo(pool))
    open.push(() => server.close())
    const client = openHttp2(server.port)
    open.push(() => client.destroy())
    const before = process.memoryUsage().rss
    const stream = client.request({ ':method': 'POST', ':path': '/' })
    progress = pour(stream)
    stream.resume()
    await until(() => received !== undefined)
    expect(await received).toBe(size)
    expect(ahead).toBeLessThan(inFlight)
    expect(process.memoryUsage().rss - before).toBeLessThan(64 * MIB)
  })

  test('64 MiB down to a client that is slow to read', async () => {
    let progress = { written: 0 }
    let ahead = 0
    const pool = await startUpstream(protocol, (_request, response) => (progress = pour(response)))
    const server = await startBind(forwardTo(pool))
    open.push(() => server.close())
    const client = openHttp2(server.port)
    open.push(() => client.destroy())
    const before = process.memoryUsage().rss
    expect(await drainLate(client.request({ ':path': '/' }), () => (ahead = progress.written))).toBe(size)
    expect(ahead).toBeLessThan(inFlight)
    expect(process.memoryUsage().rss - before).toBeLessThan(64 * MIB)
    await until(() => server.finished.length === 1)
    expect(server.finished[0]).toMatchObject({ responseBytes: size, cutBy: undefined })
  })
})
