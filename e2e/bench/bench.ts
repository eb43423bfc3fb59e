import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { findFreePort } from '../harness/program/ports.ts'
import { median } from './measure.ts'
import type { Judged } from './measure.ts'
import { startProxy, type ProxyName } from './proxies.ts'
import type { ProxySpec, RunningProxy } from './spec.ts'

/** Settings of a run, passed to every case. The proxy under test has one CPU, everything else the other. */
export interface Bench {
  readonly directory: string
  readonly bundle: string
  readonly upstreamPort: number
  readonly proxyCpu: number
  readonly loadCpu: number
  readonly seconds: number
  readonly rounds: number
  /** Warm-up rounds, which are not counted; default 1. */
  readonly warmUps?: number
  /** `nginx` measures nginx in place of the data plane, to check the harness: ratios must be about 1. */
  readonly ours: ProxyName
  /** Directory for CPU profiles of the data plane; undefined disables profiling, which slows it down. */
  readonly profiles: string | undefined
  log(text: string): void
}

/** A benchmark: measures something and returns results with limits. */
export interface Case {
  readonly name: string
  run(bench: Bench): Promise<Judged[]>
}

/** A running proxy under test, with its ports. */
export interface StartedProxy extends RunningProxy {
  readonly spec: ProxySpec
}

/** Starts a proxy under test on free ports. */
export async function start(
  bench: Bench,
  name: ProxyName,
  options: Pick<ProxySpec, 'routes' | 'isStreaming' | 'rules'> & { readonly upstreamPort?: number; readonly isTls?: boolean },
): Promise<StartedProxy> {
  const port = await findFreePort()
  const http2Port = name === 'nginx' ? await findFreePort() : port
  const { isTls = false, ...rest } = options
  const tls = isTls ? { tlsPort: await findFreePort() } : {}
  const spec: ProxySpec = { port, http2Port, ...tls, upstreamPort: bench.upstreamPort, ...rest }
  mkdirSync(bench.directory, { recursive: true })
  const proxy = await startProxy(name, join(bench.directory, name), spec, bench)
  return { ...proxy, spec }
}

/** Splits the same total time into rounds of one second, for comparisons so close that noise within a longer round would decide. */
export function inSeconds(bench: Bench): Bench {
  return { ...bench, seconds: 1, rounds: bench.rounds * bench.seconds, warmUps: bench.seconds }
}

/** Medians of two alternating measurements, by key. */
export interface Alternated<K extends string> {
  readonly a: Record<K, number>
  readonly b: Record<K, number>
  /** Median of the ratios `a` / `b` of each round (not the ratio of the medians), because both measurements of a round share the machine's state. */
  readonly ratio: Record<K, number>
}

/**
 * Measures `a` and `b` alternately, `rounds` times each after the warm-up, so that other load on the machine affects both; every other round starts with the
 * other one. Returns the medians.
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
