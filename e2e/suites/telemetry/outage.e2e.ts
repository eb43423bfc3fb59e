import { Agent, get } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { readResidentBytes } from '../../bench/proc.ts'
import { isTrueWithin } from '../../harness/wait.ts'
import { startEnvironment, type Environment } from './environment.ts'

let environment: Environment
beforeAll(async () => (environment = await startEnvironment()), 900_000)
afterAll(() => environment?.stop())

const OUTAGE_MS = 60_000
const REQUESTS_PER_SECOND = 400
/** Padding of paths that fills the exporter's queue early in the outage, even if a slow machine sends only a part of the requests. */
const padding = 'p'.repeat(2500)
let numbered = 0

/** Sends requests on persistent connections for `ms` at a fixed rate. Returns the numbers of sent and failed requests. */
async function sendFor(port: number, ms: number): Promise<{ sent: number; failed: number }> {
  const agent = new Agent({ keepAlive: true, maxSockets: 4 })
  const counts = { sent: 0, failed: 0 }
  const pending = new Set<Promise<void>>()
  for (const endMs = performance.now() + ms; performance.now() < endMs; await new Promise((resolve) => setTimeout(resolve, 50))) {
    for (let i = 0; i < REQUESTS_PER_SECOND / 20; i++) {
      counts.sent++
      const one = new Promise<void>((resolve) => {
        get({ port, host: '127.0.0.1', path: `/shop/outage?n=${numbered++}&q=${padding}`, agent }, (response) => {
          if (response.statusCode !== 200) counts.failed++
          response.resume().on('end', resolve)
        }).on('error', () => {
          counts.failed++
          resolve()
        })
      }).finally(() => pending.delete(one))
      pending.add(one)
    }
  }
  await Promise.all(pending)
  agent.destroy()
  return counts
}

/** Resident set size in MiB: the minimum over some seconds, which excludes most memory that the garbage collector has not freed yet. */
async function residentOf(pid: number): Promise<number> {
  const samples: number[] = []
  for (let sample = 0; sample < 10; sample++) {
    samples.push(readResidentBytes(pid) / 1024 ** 2)
    await sleep(300)
  }
  return Math.min(...samples)
}

test('an outage of the collector for 60 s fails no request, keeps memory flat and counts every lost record', async () => {
  const { program, metrics } = environment.dataplanes.grpc
  const count = async (name: string, signal: string): Promise<number> => {
    const lines = (await metrics()).split('\n').filter((line) => line.startsWith(`proxy_otlp_${name}_total{signal="${signal}"`))
    return lines.reduce((sum, line) => sum + Number(line.split(' ')[1]), 0)
  }
  const port = environment.ports.GRPC_PORT
  const warm = await sendFor(port, 3000)
  expect(await isTrueWithin(60_000, async () => (await count('exported', 'logs')) === warm.sent)).toBe(true)

  await environment.stopCollector()
  const first = await sendFor(port, OUTAGE_MS / 2)
  const halfwayMib = await residentOf(program.pid)
  const second = await sendFor(port, OUTAGE_MS / 2)
  const endMib = await residentOf(program.pid)
  expect([first.failed, second.failed]).toEqual([0, 0])
  const sent = warm.sent + first.sent + second.sent
  const lostInOutage = await count('dropped', 'logs')
  expect(lostInOutage).toBeGreaterThan(0)

  await environment.restartCollector()
  const isSettled = async (): Promise<boolean> => (await count('exported', 'logs')) + (await count('dropped', 'logs')) === sent
  expect(await isTrueWithin(180_000, isSettled)).toBe(true)
  const exported = await count('exported', 'logs')
  // A batch is sent again if its response was lost, so count each record once.
  const receive = async (): Promise<number> => {
    const paths = (await environment.collector().logs()).map(({ attributes }) => String(attributes['http.path']))
    return new Set(paths.filter((path) => path.startsWith('/shop/outage'))).size
  }
  await isTrueWithin(60_000, async () => (await receive()) === exported)
  expect(await receive()).toBe(exported)
  // Queues are limited to 8 MiB per signal and were already full. More data than this was lost in the second half; the rest is uncollected garbage.
  expect(endMib - halfwayMib).toBeLessThan(64)
}, 600_000)
