import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startDataplane } from '../harness/program/dataplane.ts'
import { CERTIFICATE_FILE, KEY_FILE, startNginx, writeCertificate } from './nginx.ts'
import type { ProxySpec, RunningProxy } from './spec.ts'

/** `ours` is the data plane. */
export type ProxyName = 'ours' | 'nginx'

/** CPU, program and profiling options of a proxy. */
interface Run {
  readonly proxyCpu: number
  readonly bundle: string
  readonly profiles: string | undefined
}

/** Starts a proxy; its config file is in `directory`. */
export function startProxy(name: ProxyName, directory: string, spec: ProxySpec, run: Run): Promise<RunningProxy> {
  return name === 'nginx' ? startNginx(directory, spec, run.proxyCpu) : startOurs(directory, spec, run)
}

async function startOurs(directory: string, spec: ProxySpec, { bundle, proxyCpu, profiles }: Run): Promise<RunningProxy> {
  mkdirSync(directory, { recursive: true })
  const file = join(directory, `ours-${spec.port}.yaml`)
  writeFileSync(file, configText(spec))
  writeCertificate(directory)
  // Metrics are always on; the access log is off in both proxies.
  const dataplane = await startDataplane({
    config: { file },
    entry: bundle,
    cpus: String(proxyCpu),
    log: 'warn',
    timeoutMs: 60_000,
    nodeArgs: profiles === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profiles}`],
  })
  return { pid: dataplane.program.pid, stop: () => dataplane.stop() }
}

/** The `-f` file of a spec, as JSON. Every route sets the response header `x-version` to `version`. */
export function configText(spec: ProxySpec, version?: string): string {
  const filters = version === undefined ? {} : { filters: { responseHeaders: [{ set: [{ name: 'x-version', value: version }] }] } }
  // The upstream serves HTTP/1.1 only; by default HTTP/2 requests would be forwarded as HTTP/2.
  const backends = [{ host: `127.0.0.1:${spec.upstreamPort}`, policies: { http: { version: 'HTTP1' } } }]
  const routes: object[] = (spec.rules ?? []).map((rule) => ({ ...rule, backends }))
  const plain: object[] = Array.from({ length: spec.routes }, (_, index) => ({
    name: `route-${index}`,
    matches: [{ path: { type: 'PathPrefix', value: `/route-${index}` } }],
    ...filters,
    backends,
  }))
  routes.push(...plain, { name: 'rest', ...filters, backends })
  const tls = { cert: CERTIFICATE_FILE, key: KEY_FILE }
  const binds = [
    { port: spec.port, listeners: [{ name: 'http', routes }] },
    ...(spec.tlsPort === undefined ? [] : [{ port: spec.tlsPort, listeners: [{ name: 'https', tls, routes: [{ name: 'tls', ...filters, backends }] }] }]),
  ]
  return `${JSON.stringify({ binds }, undefined, 1)}\n`
}
