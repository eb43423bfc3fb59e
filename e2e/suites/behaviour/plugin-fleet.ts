import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bundleDataplane } from '../../../images/bundle.ts'
import { send } from '../../harness/client.ts'
import { startDataplane, type Dataplane } from '../../harness/program/dataplane.ts'
import { findFreePort } from '../../harness/program/ports.ts'
import { waitUntil } from '../../harness/wait.ts'

const GOOD = `export default { setup: () => ({ async request(c, next) { await next(); c.header('x-plugins', (c.res.headers.get('x-plugins') ?? '') + '+') } }) }`
const ENDLESS = 'await 0\nfor (;;);'
/** Plugins of one policy. */
const LIST = 10

/** A data plane with many plugins, each in a worker thread. */
export interface Fleet {
  readonly dataplane: Dataplane
  /** Waits until all good plugins are loaded. Rejects if the data plane ends. */
  loaded(timeoutMs: number): Promise<void>
  /** Plugins that handled a request to the route of a list. */
  handled(list: number): Promise<number>
  stop(): Promise<void>
}

export interface FleetOptions {
  readonly good: number
  /** Plugins whose module never ends. */
  readonly endless?: number
  readonly cpus?: string
}

export async function startFleet({ good, endless = 0, cpus }: FleetOptions): Promise<Fleet> {
  const directory = await mkdtemp(join(tmpdir(), 'plugin-fleet-'))
  const [entry, port] = [await bundleDataplane(join(directory, 'bundle')), await findFreePort()]
  await writeFile(join(directory, 'good.ts'), GOOD)
  await writeFile(join(directory, 'endless.ts'), ENDLESS)
  const plugins = (names: readonly string[], file: string): object[] => names.map((name) => ({ name, source: { file } }))
  const names = (count: number, of: string): string[] => Array.from({ length: count }, (_, at) => `${of}-${at}`)
  const route = (path: string, list: readonly object[]): object => ({
    matches: [{ path: { type: 'PathPrefix', value: path } }],
    policies: { plugins: list, directResponse: { status: 200, body: 'ok' } },
  })
  const goodNames = names(good, 'good')
  const lists = Array.from({ length: Math.ceil(good / LIST) }, (_, at) => goodNames.slice(at * LIST, (at + 1) * LIST))
  const routes = [
    ...(endless === 0 ? [] : [route('/endless', plugins(names(endless, 'endless'), 'endless.ts'))]),
    ...lists.map((list, at) => route(`/${at}`, plugins(list, 'good.ts'))),
  ]
  const file = join(directory, 'config.json')
  await writeFile(file, JSON.stringify({ binds: [{ port, listeners: [{ routes }] }] }))
  const dataplane = await startDataplane({ config: { file }, entry, env: { WORKERS: '1' }, timeoutMs: 120_000, ...(cpus !== undefined && { cpus }) })
  return {
    dataplane,
    async loaded(timeoutMs) {
      await waitUntil(
        `${good} plugins are loaded`,
        async () => {
          if (dataplane.program.hasExited()) return true
          return (await dataplane.metrics()).split('\n').filter((line) => /^proxy_plugin_version\{.*plugin="[^"]*good-/.test(line)).length === good
        },
        timeoutMs,
      )
      if (dataplane.program.hasExited()) throw new Error(`the data plane ended: ${JSON.stringify(await dataplane.program.exited)}`)
    },
    async handled(list) {
      const { headers } = await send({ port, path: `/${list}` })
      return String(headers['x-plugins'] ?? '').length
    },
    async stop() {
      await dataplane.stop()
      await rm(directory, { recursive: true, force: true })
    },
  }
}
