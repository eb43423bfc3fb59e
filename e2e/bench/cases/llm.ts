import { writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { findFreePort } from '../../harness/program/ports.ts'
import { alternate, inSeconds, start, type Bench, type Case } from '../bench.ts'
import { startOurs, startPeer } from '../llm-proxies.ts'
import { runWrk } from '../load.ts'
import { judge, judgeLimit, median, type Judged } from '../measure.ts'
import { pin, readCpuSeconds } from '../proc.ts'
import { runStreams } from '../streams.ts'

const PATH = '/v1/chat/completions'
const HEADERS = { 'content-type': 'application/json' }
const peers = { portkey: { name: 'Portkey 1.15.2', atLeast: 10 }, litellm: { name: 'LiteLLM 1.106.2', atLeast: 80 } } as const

const bodyOf = (count: number, length: number): string => {
  const content = 'What is the weather in Paris like today, and what will it be tomorrow? '.repeat(Math.ceil(length / 71)).slice(0, length)
  return JSON.stringify({ model: 'gpt-4o', messages: Array.from({ length: count }, () => ({ role: 'user', content })) })
}
const SMALL = bodyOf(1, 1024)
const LARGE = bodyOf(64, 4096)

type Run = Record<'rate' | 'cpuMicros', number>

async function post(bench: Bench, pid: number, port: number, body: string, headers: Readonly<Record<string, string>> = {}, connections = 32): Promise<Run> {
  const script = join(bench.directory, `post-${body.length}.lua`)
  writeFileSync(script, `wrk.method = "POST"\nwrk.body = [[${body}]]\n`)
  const before = readCpuSeconds(pid)
  const load = await runWrk({
    url: `http://127.0.0.1:${port}${PATH}`,
    connections,
    seconds: bench.seconds,
    cpu: bench.loadCpu,
    script,
    headers: { ...HEADERS, ...headers },
  })
  if (load.failures > 0) throw new Error(`${load.failures} of ${load.requests} requests failed, so the measurement is invalid`)
  return { rate: load.requests / load.seconds, cpuMicros: ((readCpuSeconds(pid) - before) * 1e6) / load.requests }
}

/** Chat completions: their cost compared with plain proxying and with other gateways. */
export const llm: Case = {
  name: 'llm',
  async run(bench) {
    const ours = await startOurs(bench, 'log', bench.upstreamPort, true)
    const bare = await startOurs(bench, 'bare', bench.upstreamPort, false)
    try {
      const chat = () => post(bench, ours.pid, ours.ports.chat, SMALL)
      const { a, b } = await alternate(bench, chat, () => post(bench, bare.pid, bare.ports.plain, SMALL))
      const results = [
        judge(
          {
            case: 'chat completion, 1 KB, with access log, CPU',
            ours: a.cpuMicros,
            peer: b.cpuMicros,
            peerName: 'ours, plain proxying',
            unit: 'µs CPU/request',
          },
          { atMost: 2.2 },
        ),
        await againstNginx(bench, bare),
        ...(await addedLatency(bench, ours)),
        await largePrompt(bench, bare),
      ]
      for (const name of ['portkey', 'litellm'] as const) {
        const peer = await startPeer(bench, name)
        if (peer === undefined) continue
        try {
          const both = await alternate(bench, chat, () => post(bench, peer.pid, peer.port, SMALL, peer.headers, name === 'litellm' ? 8 : 32))
          const { name: peerName, atLeast } = peers[name]
          results.push(judge({ case: `chat completion, ${peerName}`, ours: both.a.rate, peer: both.b.rate, peerName, unit: 'requests/s' }, { atLeast }))
        } finally {
          await peer.stop()
        }
      }
      return results
    } finally {
      await ours.stop()
      await bare.stop()
    }
  },
}

/** The CPU time of a chat completion whose usage is read, without access log, against nginx that relays the same bytes. */
async function againstNginx(bench: Bench, { pid, ports }: Awaited<ReturnType<typeof startOurs>>): Promise<Judged> {
  const nginx = await start(bench, 'nginx', { routes: 1 })
  const fine = inSeconds(bench)
  try {
    const { a, b, ratio } = await alternate(
      fine,
      () => post(fine, pid, ports.chat, SMALL),
      () => post(fine, nginx.pid, nginx.spec.port, SMALL),
    )
    const peer = { peer: b.cpuMicros, ratio: ratio.cpuMicros, peerName: 'nginx, plain' }
    return judge({ case: 'chat completion, 1 KB, CPU', ours: a.cpuMicros, ...peer, unit: 'µs CPU/request' }, { atMost: 2.6 })
  } finally {
    await nginx.stop()
  }
}

/** The CPU time of a chat completion under budgets, against the same route without. */
export const llmBudgets: Case = {
  name: 'llm-budgets',
  async run(bench) {
    const { pid, ports, stop } = await startOurs(bench, 'budgets', bench.upstreamPort, false)
    const fine = inSeconds(bench)
    const send = (port: number) => () => post(fine, pid, port, SMALL, { 'x-person': 'ann' })
    const compare = async (name: string, port: number, bar: { atMost?: number }): Promise<Judged> => {
      const { a, b, ratio } = await alternate(fine, send(port), send(ports.chat))
      const peer = { peer: b.cpuMicros, ratio: ratio.cpuMicros, peerName: 'ours, no budget', unit: 'µs CPU/request' }
      return judge({ case: `chat completion under ${name}, CPU`, ours: a.cpuMicros, ...peer }, bar)
    }
    try {
      return [await compare('a budget', ports.budget, { atMost: 1.05 }), await compare('two budgets with three limits', ports.budgets, {})]
    } finally {
      await stop()
    }
  },
}

/** Pairs of processes that are compared: those with the same code differ by some percent for their whole life. */
const LEDGER_PAIRS = 3

/** The CPU time of a chat completion that the ledger records in a SQLite file, its thread included, against a process without a ledger. */
export const llmLedger: Case = {
  name: 'llm-ledger',
  async run(bench) {
    const fine = inSeconds(bench)
    const compare = async (name: string, ledger: object, bar: { atMost?: number }): Promise<Judged> => {
      const pairs: { ours: number; peer: number; ratio: number }[] = []
      for (let pair = 0; pair < LEDGER_PAIRS; pair++) {
        const path = join(bench.directory, `ledger-${name.replaceAll(' ', '-')}-${pair}.db`)
        const ours = await startOurs(bench, 'ledger', bench.upstreamPort, false, { ledger: { sqlite: { path }, ...ledger } })
        const bare = await startOurs(bench, 'bare', bench.upstreamPort, false)
        try {
          const send = ({ pid, ports }: typeof ours) => post(fine, pid, ports.chat, SMALL)
          const { a, b, ratio } = await alternate(
            fine,
            () => send(ours),
            () => send(bare),
          )
          pairs.push({ ours: a.cpuMicros, peer: b.cpuMicros, ratio: ratio.cpuMicros })
          bench.log(`  pair ${pair + 1}: CPU ratio ${ratio.cpuMicros.toPrecision(4)}`)
        } finally {
          await Promise.all([ours.stop(), bare.stop()])
        }
      }
      const middle = (key: 'ours' | 'peer' | 'ratio'): number => median(pairs.map((pair) => pair[key]))
      const measured = { ours: middle('ours'), peer: middle('peer'), ratio: middle('ratio') }
      return judge({ case: `chat completion, ${name}, CPU`, ...measured, peerName: 'ours, no ledger', unit: 'µs CPU/request' }, bar)
    }
    return [await compare('ledger', {}, { atMost: 1.05 }), await compare('ledger with bodies', { bodies: {} }, {})]
  },
}

/**
 * Latency of one request at a time, with all programs on one CPU. With two CPUs a gateway wakes an idle CPU four times per request, which depends on the
 * machine; that latency is reported without a limit, for the data plane and for nginx.
 */
async function addedLatency(bench: Bench, { pid, ports }: Awaited<ReturnType<typeof startOurs>>): Promise<Judged[]> {
  const nginx = await start(bench, 'nginx', { routes: 1 })
  const agent = new Agent({ keepAlive: true })
  const p50 = async (at: number): Promise<number> => {
    const times: number[] = []
    const endAtMs = performance.now() + bench.seconds * 500
    while (performance.now() < endAtMs) {
      const startedAtMs = performance.now()
      await sendOnce(at, agent)
      times.push(performance.now() - startedAtMs)
    }
    return median(times)
  }
  const onOneCpu = async (): Promise<number> => {
    pin(pid, bench.loadCpu)
    try {
      return await p50(ports.chat)
    } finally {
      pin(pid, bench.proxyCpu)
    }
  }
  try {
    const { a, b } = await alternate(
      bench,
      async () => ({ oneCpu: await onOneCpu(), twoCpus: await p50(ports.chat), plain: await p50(ports.plain), nginx: await p50(nginx.spec.port) }),
      async () => {
        const direct = await p50(bench.upstreamPort)
        return { oneCpu: direct, twoCpus: direct, plain: direct, nginx: direct }
      },
    )
    const peer = { peer: a.nginx - b.nginx, peerName: 'nginx, reported', unit: 'ms' }
    return [
      judgeLimit('chat completion alone, one CPU, added p50', a.oneCpu - b.oneCpu, 0.25, 'ms'),
      judge({ case: 'the same with the gateway on another CPU', ours: a.twoCpus - b.twoCpus, ...peer }, {}),
      judge({ case: 'the same bytes proxied plainly from there', ours: a.plain - b.plain, ...peer }, {}),
    ]
  } finally {
    agent.destroy()
    await nginx.stop()
  }
}

function sendOnce(port: number, agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, path: PATH, method: 'POST', headers: HEADERS, agent }, (response) => {
      response.resume()
      response.on('end', () => (response.statusCode === 200 ? resolve() : reject(new Error(`status ${response.statusCode}`))))
    })
    sent.on('error', reject)
    sent.end(SMALL)
  })
}

/** CPU time that reading and editing a long prompt adds to proxying its bytes, against JSON.parse and JSON.stringify in this process. */
async function largePrompt(bench: Bench, { pid, ports }: Awaited<ReturnType<typeof startOurs>>): Promise<Judged> {
  const { a, b } = await alternate(
    bench,
    () => post(bench, pid, ports.edited, LARGE, {}, 8),
    () => post(bench, pid, ports.plain, LARGE, {}, 8),
  )
  const times: number[] = []
  for (let count = 0; count < 300; count++) {
    const startedAtMs = performance.now()
    JSON.stringify(JSON.parse(LARGE))
    times.push((performance.now() - startedAtMs) * 1000)
  }
  const added = a.cpuMicros - b.cpuMicros
  return judge(
    { case: 'prompt of 256 KB with an edit, added CPU', ours: added, peer: median(times), peerName: 'JSON.parse + JSON.stringify', unit: 'µs' },
    { atMost: 1.3 },
  )
}

/** 200 streamed chat completions with 50 events per second: added latency, and CPU time per event against nginx and under a regex guard. */
export const llmStreams: Case = {
  name: 'llm-streams',
  async run(bench) {
    const upstreamPort = await findFreePort()
    const { pid, ports, stop } = await startOurs(bench, 'streams', upstreamPort, false)
    const nginx = await start(bench, 'nginx', { routes: 1, upstreamPort, isStreaming: true })
    try {
      const through = (port: number, proxy?: number) =>
        runStreams(bench, { program: 'llm-load.ts', upstreamPort, port, ...(proxy !== undefined && { pid: proxy }), streams: 200, eventsPerSecond: 50 })
      const chat = () => through(ports.chat, pid)
      const guarded = await alternate(
        bench,
        async () => {
          const direct = await through(upstreamPort)
          const proxied = await chat()
          return { ...proxied, p99: Math.max(0, proxied.p99 - direct.p99) }
        },
        () => through(ports.guarded, pid),
      )
      const relayed = await alternate(bench, chat, () => through(nginx.spec.port, nginx.pid))
      const row = (name: string, ours: number, peer: number, ratio: number, peerName: string, atMost: number) =>
        judge({ case: `${name}, CPU`, ours, peer, ratio, peerName, unit: 'µs CPU/event' }, { atMost })
      const { a, b, ratio } = relayed
      return [
        judgeLimit('200 LLM streams of 50 events/s, added p99 per event', guarded.a.p99, 2, 'ms'),
        row('LLM stream', a.cpuMicros, b.cpuMicros, ratio.cpuMicros, 'nginx, plain', 1.55),
        row('LLM stream under a regex guard', guarded.b.cpuMicros, guarded.a.cpuMicros, guarded.b.cpuMicros / guarded.a.cpuMicros, 'ours, no guard', 2),
      ]
    } finally {
      await nginx.stop()
      await stop()
    }
  },
}
