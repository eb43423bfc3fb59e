import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { stringify } from 'yaml'
import { startDataplane } from '../../harness/program/dataplane.ts'
import { startOperator } from '../../harness/program/operator.ts'
import { findFreePort } from '../../harness/program/ports.ts'
import { waitUntil } from '../../harness/wait.ts'
import type { Bench, Case } from '../bench.ts'
import { runWrk } from '../load.ts'
import { judgeLimit, median, type Judged } from '../measure.ts'
import { startProbe } from '../probe.ts'
import { configText } from '../proxies.ts'

const ROUTES = 5000
const FILES = 50
const RELOADS = 5
const LIMITS = { pauseMs: 50, effectiveMs: 1500 }

/** Replaces the `-f` file and changes every route while 32 connections send requests. */
export const reload: Case = {
  name: 'reload',
  async run(bench) {
    const file = join(bench.directory, 'reload.yaml')
    const spec = { port: await findFreePort(), http2Port: 0, upstreamPort: bench.upstreamPort, routes: ROUTES }
    writeFileSync(file, configText(spec, '0'))
    const texts = Array.from({ length: RELOADS }, (_, index) => configText(spec, String(index + 1)))
    const dataplane = await startDataplane({ config: { file }, entry: bench.bundle, cpus: String(bench.proxyCpu), log: 'warn', timeoutMs: 60_000 })
    try {
      return await measureReloads(bench, 'reload of 5,000 routes, file', spec.port, '/route-2500/x', (version) => replaceFile(file, texts[version - 1] ?? ''))
    } finally {
      await dataplane.stop()
    }
  },
}

/** Edits one of 50 manifests with 100 HTTPRoutes each; the change arrives through the operator and the config stream. */
export const reloadStream: Case = {
  name: 'reload-stream',
  async run(bench) {
    const directory = join(bench.directory, 'manifests')
    mkdirSync(directory, { recursive: true })
    const port = await findFreePort()
    writeFileSync(join(directory, 'gateway.yaml'), gatewayText(port, bench.upstreamPort))
    for (let index = 0; index < FILES; index++) writeFileSync(join(directory, `routes-${index}.yaml`), routesText(index, '0'))
    const operator = await startOperator({ directory, timeoutMs: 120_000 })
    const config = { address: operator.address, namespace: 'bench', gateway: 'bench' }
    try {
      const dataplane = await startDataplane({ config, entry: bench.bundle, cpus: String(bench.proxyCpu), log: 'warn', timeoutMs: 60_000 })
      try {
        const edit = (version: number) => replaceFile(join(directory, 'routes-25.yaml'), routesText(25, String(version)))
        return await measureReloads(bench, 'edit among 5,000 routes, stream', port, '/route-2500/x', edit)
      } finally {
        await dataplane.stop()
      }
    } finally {
      await operator.stop()
    }
  },
}

/** Edits what sets the header `x-version` of responses five times, while 32 connections send requests. `edit` writes a version, 1 to 5; version 0 is in effect before. */
export async function measureReloads(
  bench: Bench,
  title: string,
  port: number,
  path: string,
  edit: (version: number) => void,
  limits = LIMITS,
): Promise<Judged[]> {
  const probe = await startProbe(port, path)
  await waitUntil('the first version', () => probe.version() === '0', 60_000)
  const seconds = RELOADS * 3 + 4
  const load = runWrk({ url: `http://127.0.0.1:${port}${path}`, connections: 32, seconds, cpu: bench.loadCpu })
  const pauses: number[] = []
  const delays: number[] = []
  try {
    await sleep(2000)
    for (let version = 1; version <= RELOADS; version++) {
      probe.resetPause()
      const started = performance.now()
      edit(version)
      await waitUntil(`version ${version}`, () => probe.version() === String(version), 30_000)
      delays.push(probe.versionAtMs() - started)
      await sleep(300)
      pauses.push(probe.longestPauseMs())
      bench.log(`  reload ${version}: effective after ${delays.at(-1)?.toFixed(0)} ms, longest pause ${pauses.at(-1)?.toFixed(1)} ms`)
      await sleep(Math.max(0, 2500 - (performance.now() - started)))
    }
  } finally {
    probe.stop()
  }
  const { failures } = await load
  return [
    judgeLimit(`${title}: failed requests`, failures + probe.failures(), 0, 'requests'),
    judgeLimit(`${title}: longest pause`, Math.max(...pauses), limits.pauseMs, 'ms'),
    judgeLimit(`${title}: change to effective`, median(delays), limits.effectiveMs, 'ms'),
  ]
}

/** Replaces a file at once. */
export function replaceFile(file: string, text: string): void {
  writeFileSync(`${file}.tmp`, text)
  renameSync(`${file}.tmp`, file)
}

function gatewayText(port: number, upstreamPort: number): string {
  const metadata = { name: 'bench', namespace: 'bench' }
  return [
    {
      apiVersion: 'gateway.networking.k8s.io/v1',
      kind: 'Gateway',
      metadata,
      spec: { gatewayClassName: 'proxy', listeners: [{ name: 'http', port, protocol: 'HTTP' }] },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { ...metadata, annotations: { 'proxy.dev/endpoints': `127.0.0.1:${upstreamPort}` } },
      spec: { ports: [{ port: 80 }] },
    },
  ]
    .map((object) => stringify(object))
    .join('---\n')
}

function routesText(file: number, version: string): string {
  const perFile = ROUTES / FILES
  const routes = Array.from({ length: perFile }, (_, offset) => {
    const index = file * perFile + offset
    const set = [{ name: 'x-version', value: version }]
    return {
      apiVersion: 'gateway.networking.k8s.io/v1',
      kind: 'HTTPRoute',
      metadata: { name: `route-${index}`, namespace: 'bench' },
      spec: {
        parentRefs: [{ name: 'bench' }],
        rules: [
          {
            matches: [{ path: { type: 'PathPrefix', value: `/route-${index}` } }],
            filters: [{ type: 'ResponseHeaderModifier', responseHeaderModifier: { set } }],
            backendRefs: [{ name: 'bench', port: 80 }],
          },
        ],
      },
    }
  })
  return routes.map((route) => stringify(route)).join('---\n')
}
