import { mkdirSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import type { Plugin } from 'esbuild'
import type { BrowserContext, CDPSession, Page } from 'playwright-core'
import { bundleProgram } from '../../../images/bundle.ts'
import { buildConsole } from '../../../images/console.ts'
import { startDataplane } from '../../harness/program/dataplane.ts'
import { findFreePort } from '../../harness/program/ports.ts'
import { waitUntil } from '../../harness/wait.ts'
import { startBrowser } from '../../suites/browser/browser.ts'
import { alternate, inSeconds, type Bench, type Case, type StartedProxy } from '../bench.ts'
import { judge, median, type Judged } from '../measure.ts'
import { readResidentBytes } from '../proc.ts'
import { configText } from '../proxies.ts'
import { runAtRate } from '../load.ts'
import { measure, wrk } from './throughput.ts'

const ROOT = join(import.meta.dirname, '../../..')
const ROUTES = 300
const PATH = '/route-5/x'
/** Processes of each kind that are compared. */
const PAIRS = 5
const MAX_MIB = 2
const PAGES = ['overview', 'requests'] as const
const FRAME_RATE = 60
/** Requests per second while a page is open, unless the machine reaches less than twice as many. */
const RATE = 10_000

/** What records for the console while nobody looks, by file. The comparison runs a data plane without these lines. */
const recording: Readonly<Record<string, readonly (readonly [line: string, replacement: string])[]>> = {
  'dataplane/observe/telemetry/telemetry.ts': [['if (telemetry.observe !== undefined) telemetry.observe(exchange)', '']],
  'dataplane/program/dataplane.ts': [
    ['new VersionHistory(store)', '{ reject: () => undefined } as unknown as VersionHistory'],
    ["new LiveStats((families) => traffic.threads('sample', families))", 'undefined as unknown as LiveStats'],
    ['live.start()', ''],
  ],
}

const withoutRecording: Plugin = {
  name: 'without-recording',
  setup: ({ onLoad }) =>
    onLoad({ filter: /[/\\](?:telemetry[/\\]telemetry|program[/\\]dataplane)\.ts$/ }, async ({ path }) => {
      let contents = await readFile(path, 'utf8')
      for (const [line, replacement] of recording[relative(ROOT, path)] ?? []) {
        if (!contents.includes(line)) throw new Error(`${relative(ROOT, path)} has no "${line}": adapt e2e/bench/cases/console.ts`)
        contents = contents.replace(line, replacement)
      }
      return { contents, loader: 'ts' }
    }),
}

interface Watched extends StartedProxy {
  /** Of the console. */
  readonly url: string
}

async function startOurs(bench: Bench, name: string, entry = bench.bundle): Promise<Watched> {
  const port = await findFreePort()
  const spec = { port, http2Port: port, upstreamPort: bench.upstreamPort, routes: ROUTES }
  mkdirSync(join(bench.directory, name), { recursive: true })
  const file = join(bench.directory, name, 'config.json')
  writeFileSync(file, configText(spec))
  const dataplane = await startDataplane({ config: { file }, entry, cpus: String(bench.proxyCpu), log: 'warn' })
  return { pid: dataplane.program.pid, spec, url: `http://127.0.0.1:${dataplane.ports.admin}/`, stop: () => dataplane.stop() }
}

/** CPU of a request and RSS of a data plane whose console nobody opens, against one that records nothing for it. */
async function measureUnwatched(bench: Bench): Promise<Judged[]> {
  const bare = await bundleProgram('dataplane', join(bench.directory, 'unrecorded'), { plugins: [withoutRecording] })
  const pairs = { ours: [] as number[], peer: [] as number[] }
  const ratios: number[] = []
  let cpu = { ours: Number.NaN, peer: Number.NaN }
  // Processes with the same code differ by some percent for their whole life, so that several pairs are compared.
  for (let pair = 0; pair < PAIRS; pair++) {
    const ours = await startOurs(bench, 'recorded')
    const peer = await startOurs(bench, 'unrecorded', bare)
    try {
      const { a, b, ratio } = await alternate(
        inSeconds(bench),
        () => wrk({ ...bench, seconds: 1 }, ours, PATH),
        () => wrk({ ...bench, seconds: 1 }, peer, PATH),
      )
      ratios.push(ratio.cpuMicros)
      cpu = { ours: a.cpuMicros, peer: b.cpuMicros }
      pairs.ours.push(readResidentBytes(ours.pid) / 1024 ** 2)
      pairs.peer.push(readResidentBytes(peer.pid) / 1024 ** 2)
      bench.log(`  pair ${pair + 1}: CPU ratio ${ratio.cpuMicros.toPrecision(4)}, RSS ${pairs.ours.at(-1)?.toFixed(1)} | ${pairs.peer.at(-1)?.toFixed(1)} MiB`)
    } finally {
      await Promise.all([ours.stop(), peer.stop()])
    }
  }
  const peerName = 'without recording'
  const added = median(pairs.ours) - median(pairs.peer)
  return [
    judge({ case: 'console, nobody looking, CPU', ...cpu, ratio: median(ratios), peerName, unit: 'µs CPU/request' }, { atMost: 1.01 }),
    judge({ case: 'console, nobody looking, RSS', ours: Math.max(0, added), peer: MAX_MIB, peerName: 'limit', unit: 'MiB more' }, { atMost: 1 }),
  ]
}

/** Frames that the page draws in a second, and the part of the time that its main thread computes (CPU time, in seconds per second). */
async function measureFrames(page: Page, session: CDPSession, seconds: number): Promise<{ readonly perSecond: number; readonly busy: number }> {
  const taskSeconds = async (): Promise<number> => {
    const { metrics } = await session.send('Performance.getMetrics')
    return metrics.find(({ name }) => name === 'TaskDuration')?.value ?? Number.NaN
  }
  const before = await taskSeconds()
  const perSecond = await page.evaluate<number>(`new Promise((resolve) => {
    const startedAt = performance.now()
    let frames = 0
    const count = () => {
      frames++
      const ms = performance.now() - startedAt
      if (ms < ${seconds * 1000}) requestAnimationFrame(count)
      else resolve(frames * 1000 / ms)
    }
    requestAnimationFrame(count)
  })`)
  return { perSecond, busy: ((await taskSeconds()) - before) / seconds }
}

async function openPage(context: BrowserContext, url: string): Promise<{ readonly page: Page; readonly session: CDPSession }> {
  const page = await context.newPage()
  const session = await context.newCDPSession(page)
  await session.send('Performance.enable', { timeDomain: 'threadTicks' })
  await page.goto(url)
  await page.getByRole('status').getByText('live').first().waitFor()
  return { page, session }
}

/** CPU of a request while a page of the console is open, against a data plane whose console nobody opens; frames of the page under load. */
async function measureWatched(bench: Bench): Promise<Judged[]> {
  await buildConsole(join(dirname(bench.bundle), 'console'))
  const watched = await startOurs(bench, 'watched')
  const peer = await startOurs(bench, 'unwatched')
  // Inherits the CPU of this program.
  const browser = await startBrowser()
  try {
    const results: Judged[] = []
    // At the same rate: a request costs more CPU if there are fewer of them, and the browser takes some of the load generator's.
    const { rate: most } = await wrk(bench, peer, PATH)
    const rate = Math.min(RATE, Math.floor(most / 2))
    const load = (proxy: StartedProxy) =>
      measure(proxy, () => runAtRate({ url: `http://127.0.0.1:${proxy.spec.port}${PATH}`, connections: 32, seconds: bench.seconds, cpu: bench.loadCpu, rate }))
    for (const name of PAGES) {
      const { page, session } = await openPage(browser.context, `${watched.url}#/${name}`)
      const frames: { perSecond: number; busy: number }[] = []
      const { a, b, ratio } = await alternate(
        { ...bench, warmUps: 1 },
        async () => {
          const [sent, drawn] = await Promise.all([load(watched), measureFrames(page, session, bench.seconds)])
          frames.push(drawn)
          return sent
        },
        () => load(peer),
      )
      await waitUntil('the page shows the load', async () => (await page.locator('main').textContent())?.includes('/route-5/x') === true || name === 'overview')
      await page.close()
      const peerName = 'no page open'
      results.push(
        judge({ case: `console, page ${name} open, CPU at ${rate}/s`, ours: a.cpuMicros, peer: b.cpuMicros, peerName, unit: 'µs CPU/request' }, {}),
        // A page reads in intervals, and the tail returns a fixed number of requests: its cost is one of time, not of requests.
        judge(
          {
            case: `console, page ${name} open, CPU at ${RATE}/s`,
            ours: b.cpuMicros + ((a.cpuMicros - b.cpuMicros) * rate) / RATE,
            peer: b.cpuMicros,
            ratio: 1 + ((ratio.cpuMicros - 1) * rate) / RATE,
            peerName,
            unit: 'µs CPU/request',
          },
          { atMost: 1.05 },
        ),
        judge(
          {
            case: `console, page ${name}, frames`,
            ours: median(frames.map(({ perSecond }) => perSecond)),
            peer: FRAME_RATE,
            peerName: 'display',
            unit: 'frames/s',
          },
          { atLeast: 0.95 },
        ),
        judge(
          { case: `console, page ${name}, main thread`, ours: median(frames.map(({ busy }) => busy)), peer: 1, peerName: 'always busy', unit: 's/s' },
          { atMost: 0.2 },
        ),
      )
    }
    return results
  } finally {
    await browser.close()
    await Promise.all([watched.stop(), peer.stop()])
  }
}

/** The cost of the console. */
export const consoleCost: Case = {
  name: 'console',
  run: async (bench) => [...(await measureUnwatched(bench)), ...(await measureWatched(bench))],
}
