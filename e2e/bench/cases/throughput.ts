import { alternate, start, type Bench, type Case, type StartedProxy } from '../bench.ts'
import { runH2load, runWrk, type Load } from '../load.ts'
import { judge, type Judged } from '../measure.ts'
import { LARGE_PATH } from '../nginx.ts'
import { readCpuSeconds } from '../proc.ts'

const CONNECTIONS = 32

/** GET with a 92-byte response over persistent HTTP/1.1 connections: the cost of a request. */
export const plain: Case = {
  name: 'plain',
  run: (bench) =>
    compare(
      bench,
      { routes: 10 },
      (proxy) => wrk(bench, proxy, '/route-5/x'),
      (ours, peer) => [
        judge({ case: 'plain GET', ours: ours.rate, peer: peer.rate, peerName: 'nginx', unit: 'requests/s' }, { atLeast: 0.5 }),
        judgeCpu('plain GET, CPU', ours, peer, 1.45),
      ],
    ),
}

/** The same over TLS. */
export const https: Case = {
  name: 'https',
  run: (bench) =>
    compare(
      bench,
      { routes: 10, isTls: true },
      (proxy) =>
        measure(proxy, () =>
          runWrk({ url: `https://127.0.0.1:${proxy.spec.tlsPort}/route-5/x`, connections: CONNECTIONS, seconds: bench.seconds, cpu: bench.loadCpu }),
        ),
      (ours, peer) => [judgeCpu('HTTPS GET, CPU', ours, peer, 1.7)],
    ),
}

/** Responses of 1 MiB: the cost of a byte. */
export const bodies: Case = {
  name: 'bodies',
  run: (bench) =>
    compare(
      bench,
      { routes: 10 },
      (proxy) => wrk(bench, proxy, LARGE_PATH),
      (ours, peer) => [
        judge({ case: '1 MiB bodies', ours: ours.mebibytes, peer: peer.mebibytes, peerName: 'nginx', unit: 'MiB/s' }, { atLeast: 0.6 }),
        judgeCpu('1 MiB bodies, CPU', ours, peer, 0.35),
      ],
    ),
}

/** HTTP/2 from the client, in cleartext, HTTP/1.1 to the upstream. */
export const http2: Case = {
  name: 'http2',
  run: (bench) =>
    compare(
      bench,
      { routes: 10 },
      (proxy) => h2load(bench, proxy, `http://127.0.0.1:${proxy.spec.http2Port}/route-5/x`),
      (ours, peer) => [
        judge({ case: 'HTTP/2 GET', ours: ours.rate, peer: peer.rate, peerName: 'nginx', unit: 'requests/s' }, { atLeast: 0.4 }),
        judgeCpu('HTTP/2 GET, CPU', ours, peer, 1.1),
      ],
    ),
}

/** The same over TLS. */
export const http2Tls: Case = {
  name: 'http2-tls',
  run: (bench) =>
    compare(
      bench,
      { routes: 10, isTls: true },
      (proxy) => h2load(bench, proxy, `https://127.0.0.1:${proxy.spec.tlsPort}/route-5/x`),
      (ours, peer) => [judgeCpu('HTTP/2 GET over TLS, CPU', ours, peer, 1.1)],
    ),
}

/** The cost of 4,990 more routes. The requested route is in the middle. */
export const routes: Case = {
  name: 'routes',
  async run(bench) {
    const few = await start(bench, bench.ours, { routes: 10 })
    const many = await start(bench, bench.ours, { routes: 5000 })
    try {
      const { a, b } = await alternate(
        bench,
        () => wrk(bench, few, '/route-5/x'),
        () => wrk(bench, many, '/route-2500/x'),
      )
      const result = { case: '5,000 routes, CPU', ours: b.cpuMicros, peer: a.cpuMicros, peerName: 'ours, 10 routes', unit: 'µs CPU/request' }
      return [judge(result, { atMost: 1.15 })]
    } finally {
      await few.stop()
      await many.stop()
    }
  },
}

/** Requests per second, CPU time per request in microseconds, MiB per second, and number of failed requests. */
export type Throughput = Record<'rate' | 'cpuMicros' | 'mebibytes' | 'failures', number>

async function compare(
  bench: Bench,
  options: { readonly routes: number; readonly isTls?: boolean },
  run: (proxy: StartedProxy) => Promise<Throughput>,
  judgeBoth: (ours: Throughput, peer: Throughput) => Judged[],
): Promise<Judged[]> {
  const ours = await start(bench, bench.ours, options)
  const peer = await start(bench, 'nginx', options)
  try {
    const { a, b } = await alternate(
      bench,
      () => run(ours),
      () => run(peer),
    )
    return judgeBoth(a, b)
  } finally {
    await ours.stop()
    await peer.stop()
  }
}

/** Measures a path of a proxy under load by wrk. */
export function wrk(bench: Bench, proxy: StartedProxy, path: string, headers: Readonly<Record<string, string>> = {}): Promise<Throughput> {
  return measure(proxy, () =>
    runWrk({ url: `http://127.0.0.1:${proxy.spec.port}${path}`, connections: CONNECTIONS, seconds: bench.seconds, cpu: bench.loadCpu, headers }),
  )
}

function h2load(bench: Bench, proxy: StartedProxy, url: string): Promise<Throughput> {
  return measure(proxy, () => runH2load({ url, connections: CONNECTIONS, streams: 32, seconds: bench.seconds, cpu: bench.loadCpu }))
}

function judgeCpu(name: string, ours: Throughput, peer: Throughput, atMost: number): Judged {
  return judge({ case: name, ours: ours.cpuMicros, peer: peer.cpuMicros, peerName: 'nginx', unit: 'µs CPU/request' }, { atMost })
}

export async function measure(proxy: StartedProxy, run: () => Promise<Load>): Promise<Throughput> {
  const before = readCpuSeconds(proxy.pid)
  const load = await run()
  const cpu = readCpuSeconds(proxy.pid) - before
  if (load.failures > 0) throw new Error(`${load.failures} of ${load.requests} requests failed, so the measurement is invalid`)
  return {
    rate: load.requests / load.seconds,
    cpuMicros: (cpu * 1e6) / load.requests,
    mebibytes: load.bytes / load.seconds / 1024 ** 2,
    failures: load.failures,
  }
}
