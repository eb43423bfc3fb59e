import { writeFileSync } from 'node:fs'
import { cpus, release, totalmem } from 'node:os'
import { join } from 'node:path'
import packageJson from '../../../package.json' with { type: 'json' }
import type { Bench } from '../bench.ts'
import { format } from '../chart.ts'
import { runH2load, runWrk, type Load } from '../load.ts'
import { median } from '../measure.ts'
import { LARGE_PATH } from '../nginx.ts'
import { readCpuSeconds, readResidentBytes } from '../proc.ts'
import { drawPeers, type Group } from './chart.ts'
import { peers, type Endpoints } from './programs.ts'

const CONNECTIONS = 32
const STREAMS = 32
const PATH = '/route-5/x'
const CHAT = '/v1/chat/completions'
const PROMPT = 'What is the weather in Paris like today, and what will it be tomorrow? '.repeat(15).slice(0, 1024)

/** A program that runs. */
interface Contestant {
  readonly name: string
  readonly endpoints: Endpoints
}

interface Measurement {
  /** Requests per second. */
  readonly rate: number
  /** CPU of a request, in microseconds. */
  readonly cpuMicros: number
}

interface PeerCase {
  readonly title: string
  /** Runs the load; undefined if the program does not do that. */
  run(bench: Bench, endpoints: Endpoints): { readonly pid: number; readonly load: () => Promise<Load> } | undefined
}

const overWrk = (bench: Bench, url: string): Promise<Load> => runWrk({ url, connections: CONNECTIONS, seconds: bench.seconds, cpu: bench.loadCpu })
const overH2load = (bench: Bench, url: string): Promise<Load> =>
  runH2load({ url, connections: CONNECTIONS, streams: STREAMS, seconds: bench.seconds, cpu: bench.loadCpu })

/** A case of plain requests to a port of the program. */
const httpCase = (title: string, load: (bench: Bench, http: NonNullable<Endpoints['http']>) => Promise<Load>): PeerCase => ({
  title,
  run: (bench, { http }) => http && { pid: http.pid, load: () => load(bench, http) },
})

const cases: readonly PeerCase[] = [
  httpCase('GET, HTTP/1.1', (bench, { port }) => overWrk(bench, `http://127.0.0.1:${port}${PATH}`)),
  httpCase('GET, HTTPS', (bench, { tlsPort }) => overWrk(bench, `https://127.0.0.1:${tlsPort}${PATH}`)),
  httpCase('GET, HTTP/2', (bench, { http2Port }) => overH2load(bench, `http://127.0.0.1:${http2Port}${PATH}`)),
  httpCase('GET, HTTP/2 over TLS', (bench, { tlsPort }) => overH2load(bench, `https://127.0.0.1:${tlsPort}${PATH}`)),
  httpCase('GET, response of 1 MiB', (bench, { port }) => overWrk(bench, `http://127.0.0.1:${port}${LARGE_PATH}`)),
  {
    title: 'Chat completion, prompt of 1 KB',
    run: (bench, { chat }) =>
      chat && {
        pid: chat.pid,
        load: () =>
          runWrk({
            url: `http://127.0.0.1:${chat.port}${CHAT}`,
            connections: chat.connections ?? CONNECTIONS,
            seconds: bench.seconds,
            cpu: bench.loadCpu,
            script: writeScript(bench, chat.model ?? 'gpt-4o'),
            headers: { 'content-type': 'application/json', ...chat.headers },
          }),
      },
  },
]

function writeScript(bench: Bench, model: string): string {
  const file = join(bench.directory, `chat-${model.replace('/', '-')}.lua`)
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: PROMPT }] })
  writeFileSync(file, `wrk.method = "POST"\nwrk.body = [[${body}]]\n`)
  return file
}

/** Measures all programs side by side, and writes peers.md, peers.json and peers.svg to a directory. Programs that cannot be had are listed with the reason. */
export async function measurePeers(bench: Bench, out: string): Promise<void> {
  const contestants: Contestant[] = []
  const absent: { name: string; reason: string }[] = []
  try {
    for (const peer of peers) {
      await peer.begin(bench).then(
        (endpoints) => contestants.push({ name: peer.name, endpoints }),
        (error: Error) => absent.push({ name: peer.name, reason: firstLine(error) }),
      )
      bench.log(`${peer.name}: ${absent.find(({ name }) => name === peer.name)?.reason ?? 'runs'}`)
    }
    const results = new Map<string, Map<string, Measurement>>()
    for (const one of cases) results.set(one.title, await measureCase(bench, one, contestants, absent))
    const residents = new Map(contestants.map(({ name, endpoints }) => [name, readResidentBytes((endpoints.http ?? endpoints.chat)?.pid ?? 0) / 1024 ** 2]))
    const machine = `${cpus().length} CPUs, ${cpus()[0]?.model ?? 'unknown'}, ${(totalmem() / 1024 ** 3).toFixed(0)} GiB, Linux ${release()}`
    const footnote = `${machine}; medians of ${bench.rounds} rounds of ${bench.seconds} s`
    const table = describe({ results, contestants, absent, residents, footnote })
    console.log(table)
    writeFileSync(join(out, 'peers.md'), table)
    const values = [...results].map(([title, byName]) => ({ case: title, programs: Object.fromEntries(byName) }))
    writeFileSync(join(out, 'peers.json'), `${JSON.stringify({ machine, values, absent }, undefined, 2)}\n`)
    writeFileSync(join(out, 'peers.svg'), drawPeers(toGroups(results, contestants), packageJson.name, footnote))
  } finally {
    await Promise.all(contestants.map(({ endpoints }) => endpoints.stop()))
  }
}

function firstLine(error: Error): string {
  const { stderr = '' } = error as { stderr?: string }
  return (
    stderr
      .trim()
      .split('\n')
      .findLast((line) => line !== '') ??
    error.message.split('\n')[0] ??
    ''
  )
}

/** Every round measures all programs; each round starts with another one, so that a change of the machine affects all of them. */
async function measureCase(
  bench: Bench,
  { title, run }: PeerCase,
  contestants: readonly Contestant[],
  absent: { name: string; reason: string }[],
): Promise<Map<string, Measurement>> {
  const samples = new Map<string, Measurement[]>()
  const broken = new Set<string>()
  for (let round = 0; round <= bench.rounds; round++) {
    const order = contestants.map((_, index) => contestants[(index + round) % contestants.length])
    for (const contestant of order) {
      const prepared = contestant && !broken.has(contestant.name) ? run(bench, contestant.endpoints) : undefined
      if (contestant === undefined || prepared === undefined) continue
      const { name } = contestant
      const before = readCpuSeconds(prepared.pid)
      const load = await prepared.load().catch((error: Error) => error)
      if (load instanceof Error || load.failures > 0 || load.requests === 0) {
        const reason =
          load instanceof Error
            ? `the load generator failed: ${firstLine(load)}`
            : load.failures > 0
              ? `${load.failures} of ${load.requests} requests failed`
              : 'no request was completed'
        broken.add(name)
        absent.push({ name: `${name}, ${title}`, reason })
        bench.log(`${title}: ${name}: ${reason}`)
        continue
      }
      const { requests, seconds } = load
      const measurement = { rate: requests / seconds, cpuMicros: ((readCpuSeconds(prepared.pid) - before) * 1e6) / requests }
      bench.log(`${title}, ${round === 0 ? 'warm-up' : `round ${round}`}: ${name} ${format(measurement.cpuMicros)} µs, ${format(measurement.rate)} requests/s`)
      if (round > 0) samples.set(name, [...(samples.get(name) ?? []), measurement])
    }
  }
  const measured = [...samples].filter(([name]) => !broken.has(name))
  return new Map(
    measured.map(([name, list]) => [name, { rate: median(list.map(({ rate }) => rate)), cpuMicros: median(list.map(({ cpuMicros }) => cpuMicros)) }]),
  )
}

/** A program that forwards chat completions without reading them is no LLM gateway. */
const isPlainChat = (title: string, { endpoints }: Contestant): boolean => title.startsWith('Chat') && endpoints.chat?.isPlain === true

function toGroups(results: ReadonlyMap<string, ReadonlyMap<string, Measurement>>, contestants: readonly Contestant[]): Group[] {
  return [...results].map(([title, byName]) => ({
    title,
    bars: contestants.flatMap((contestant) => {
      const value = byName.get(contestant.name)?.cpuMicros
      return value === undefined || isPlainChat(title, contestant) ? [] : [{ name: contestant.name, value }]
    }),
  }))
}

interface Table {
  readonly results: ReadonlyMap<string, ReadonlyMap<string, Measurement>>
  readonly contestants: readonly Contestant[]
  readonly absent: readonly { readonly name: string; readonly reason: string }[]
  readonly residents: ReadonlyMap<string, number>
  readonly footnote: string
}

function describe({ results, contestants, absent, residents, footnote }: Table): string {
  const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  const names = contestants.map(({ name, endpoints }) => `${name} ${endpoints.version}`)
  const rows = [...results].map(([title, byName]) =>
    row([
      title,
      ...contestants.map((contestant) => {
        const found = byName.get(contestant.name)
        return found ? `${format(found.cpuMicros)} (${format(found.rate)})${isPlainChat(title, contestant) ? ' \\*' : ''}` : '-'
      }),
    ]),
  )
  const memory = row(['RSS afterwards, MiB', ...contestants.map(({ name }) => format(residents.get(name) ?? Number.NaN))])
  const commands = contestants.map(({ name, endpoints }) => `- ${name} ${endpoints.version}: \`${endpoints.command}\``)
  const missing = absent.map(({ name, reason }) => `- ${name}: ${reason}`)
  return [
    'CPU in µs per request, and requests per second on one core in parentheses. \\* forwards the bytes, reads no usage.',
    '',
    row(['case', ...names]),
    row(['---', ...names.map(() => '---:')]),
    ...rows,
    memory,
    '',
    footnote,
    '',
    ...commands,
    ...(missing.length > 0 ? ['', 'Not measured:', ...missing] : []),
    '',
  ].join('\n')
}
