import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer as createHttp1Server } from 'node:http'
import { createServer as createHttp2Server, type ClientHttp2Session, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo, Server } from 'node:net'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, test } from '@jest/globals'
import { openHttp2 } from './testing.ts'
import { until } from '../../../e2e/harness/wait.ts'

const MIB = 1024 * 1024
const size = 96 * MIB
/** Limit of bytes in flight: windows, kernel buffers and one write on each of the two hops. */
const inFlight = 48 * MIB

const open: (() => unknown)[] = []
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close()
})

const chunk = Buffer.alloc(65_536, 'x')
/** Writes `size` bytes with back-pressure. */
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

/** Reads nothing for a while, then everything. */
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

async function startUpstream(protocol: 'http1' | 'http2', serve: Serve): Promise<number> {
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
  return (server.address() as AddressInfo).port
}

interface Gateway {
  readonly client: ClientHttp2Session
  /** Peak growth of the process since its start, in bytes. */
  peakGrowth(): number
}

/** A separate process, so that its memory does not include that of client and upstream. */
async function startGateway(protocol: 'http1' | 'http2', upstream: number): Promise<Gateway> {
  const at = (path: string): string => JSON.stringify(new URL(path, import.meta.url).href)
  const create = protocol === 'http1' ? 'createHttp1Pool' : 'createHttp2Pool'
  const program = `
    import { forwardTo, startBind } from ${at('./testing.ts')}
    import { ${create} } from ${at(`../upstream/${protocol}/pool.ts`)}
    const pool = ${create}({ host: '127.0.0.1', port: ${upstream}, tls: undefined, keepAlive: undefined })
    console.log((await startBind(forwardTo(pool))).port)`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], { stdio: ['ignore', 'pipe', 'inherit'] })
  open.push(() => void child.kill('SIGKILL'))
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  const memory = (field: string): number => Number(new RegExp(`${field}:\\s+(\\d+)`).exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]) * 1024
  const before = memory('VmRSS')
  const client = openHttp2(Number(line.toString()))
  open.push(() => client.destroy())
  return { client, peakGrowth: () => memory('VmHWM') - before }
}

describe.each(['http1', 'http2'] as const)('back-pressure from an HTTP/2 client to an %s upstream', (protocol) => {
  test('bounds the memory of an upload of 96 MiB to an upstream that reads slowly', async () => {
    let received: Promise<number> | undefined
    let progress = { written: 0 }
    let ahead = 0
    const upstream = await startUpstream(protocol, (request, response) => {
      received = drainLate(request, () => (ahead = progress.written))
      void received.then(() => response.end('done'))
    })
    const { client, peakGrowth } = await startGateway(protocol, upstream)
    const stream = client.request({ ':method': 'POST', ':path': '/' })
    progress = pour(stream)
    stream.resume()
    await until(() => received !== undefined)
    expect(await received).toBe(size)
    expect(ahead).toBeLessThan(inFlight)
    expect(peakGrowth()).toBeLessThan(size)
  })

  test('bounds the memory of a download of 96 MiB to a client that reads slowly', async () => {
    let progress = { written: 0 }
    let ahead = 0
    const upstream = await startUpstream(protocol, (_request, response) => (progress = pour(response)))
    const { client, peakGrowth } = await startGateway(protocol, upstream)
    expect(await drainLate(client.request({ ':path': '/' }), () => (ahead = progress.written))).toBe(size)
    expect(ahead).toBeLessThan(inFlight)
    expect(peakGrowth()).toBeLessThan(size)
  })
})
