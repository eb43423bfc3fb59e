import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { findFreePort } from '../harness/program/ports.ts'
import { median } from './measure.ts'
import type { Judged } from './measure.ts'
import { startProxy, type ProxyName } from './proxies.ts'
import type { ProxySpec, RunningProxy } from './spec.ts'

/** What every case works with. The proxy under test has one CPU, everything else the other. */
export interface Bench {
  readonly directory: string
  readonly bundle: string
  readonly upstreamPort: number
  readonly proxyCpu: number
  readonly loadCpu: number
  readonly seconds: number
  readonly rounds: number
  /** Rounds before those that count; default 1. */
  readonly warmUps?: number
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

/** The same time in rounds of one second: for two things so close that what else the machine does within a longer round would decide. */
export function inSeconds(bench: Bench): Bench {
  return { ...bench, seconds: 1, rounds: bench.rounds * bench.seconds, warmUps: bench.seconds }
}

export interface Alternated<K extends string> {
  readonly a: Record<K, number>
  readonly b: Record<K, number>
  /** `a` / `b` of the round in the middle, which is not the ratio of the medians: both of a round had the same machine. */
  readonly ratio: Record<K, number>
}

/**
 * Measures two things in turn, `rounds` times each after the warm-up, so that what else the machine does hits both; every other round
 * begins with the other. Gives the medians.
 */
export async function alternate<K extends string>(
  bench: Bench,
  a: () => Promise<Record<K, number>>,
  b: () => Promise<Record<K, number>>,
): Promise<Alternated<K>> {
  const rounds: { a: Record<K, number>; b: Record<K, number> }[] = []
  for (let round = 1 - (bench.warmUps ?? 1); round <= bench.rounds; round++) {
    const first = round % 2 === 0 ? await a() : await b()
    const pair = round % 2 === 0 ? { a: first, b: await b() } : { a: await a(), b: first }
    bench.log(`  ${round < 1 ? 'warm-up' : `round ${round}`}: ${describe(pair.a)} | ${describe(pair.b)}`)
    if (round >= 1) rounds.push(pair)
  }
  const keys = Object.keys(rounds[0]?.a ?? {}) as K[]
  const middle = (read: (pair: (typeof rounds)[number], key: K) => number): Record<K, number> =>
    Object.fromEntries(keys.map((key) => [key, median(rounds.map((pair) => read(pair, key)))])) as Record<K, number>
  return {
    a: middle((pair, key) => pair.a[key]),
    b: middle((pair, key) => pair.b[key]),
    ratio: middle((pair, key) => pair.a[key] / pair.b[key]),
  }
}

function describe(values: Record<string, number>): string {
  return Object.entries(values)
    .map(([key, value]) => `${key} ${value.toPrecision(4)}`)
    .join(', ')
}
