import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { findFreePort } from '../harness/ports.ts'
import { median } from './measure.ts'
import type { Judged } from './measure.ts'
import { startProxy, type ProxyName, type ProxySpec, type RunningProxy } from './proxies.ts'

/** What every case works with. The proxy under test has one CPU, everything else the other. */
export interface Bench {
  readonly directory: string
  readonly bundle: string
  readonly upstreamPort: number
  readonly proxyCpu: number
  readonly loadCpu: number
  readonly seconds: number
  readonly rounds: number
  /** `nginx` puts nginx in our place: a check of the harness itself, whose ratios have to be about 1. */
  readonly ours: ProxyName
  /** Where to leave CPU profiles of ours; absent: none are made, as they slow it down. */
  readonly profiles: string | undefined
  log(text: string): void
}

export interface Case {
  readonly name: string
  run(bench: Bench): Promise<Judged[]>
}

export interface StartedProxy extends RunningProxy {
  readonly spec: ProxySpec
}

/** Starts a proxy of the bench on free ports. */
export async function start(
  bench: Bench,
  name: ProxyName,
  options: Pick<ProxySpec, 'routes' | 'isStreaming' | 'rules'> & { upstreamPort?: number },
): Promise<StartedProxy> {
  const port = await findFreePort()
  const http2Port = name === 'nginx' ? await findFreePort() : port
  const spec: ProxySpec = { port, http2Port, upstreamPort: bench.upstreamPort, ...options }
  mkdirSync(bench.directory, { recursive: true })
  const proxy = await startProxy(name, join(bench.directory, name), spec, bench)
  return { ...proxy, spec }
}

/** Measures two things in turn, `rounds` times each after one warm-up, so that what else the machine does hits both. Gives the medians. */
export async function alternate<K extends string>(
  bench: Bench,
  a: () => Promise<Record<K, number>>,
  b: () => Promise<Record<K, number>>,
): Promise<{ a: Record<K, number>; b: Record<K, number> }> {
  const rounds: { a: Record<K, number>[]; b: Record<K, number>[] } = { a: [], b: [] }
  for (let round = 0; round <= bench.rounds; round++) {
    const one = await a()
    const two = await b()
    bench.log(`  ${round === 0 ? 'warm-up' : `round ${round}`}: ${describe(one)} | ${describe(two)}`)
    if (round === 0) continue
    rounds.a.push(one)
    rounds.b.push(two)
  }
  return { a: medians(rounds.a), b: medians(rounds.b) }
}

function medians<K extends string>(rounds: readonly Record<K, number>[]): Record<K, number> {
  const keys = Object.keys(rounds[0] ?? {}) as K[]
  return Object.fromEntries(keys.map((key) => [key, median(rounds.map((round) => round[key]))])) as Record<K, number>
}

function describe(values: Record<string, number>): string {
  return Object.entries(values)
    .map(([key, value]) => `${key} ${value.toPrecision(4)}`)
    .join(', ')
}
