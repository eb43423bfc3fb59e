import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { stringify } from 'yaml'
import { makeCertificate } from '../../harness/certificates.ts'
import { startDataplane } from '../../harness/program/dataplane.ts'
import { findFreePorts } from '../../harness/program/ports.ts'
import { startEcho } from '../../harness/upstream/echo.ts'
import { knownFailures } from './known-failures.ts'

const H2SPEC = join(import.meta.dirname, '../../../.tools/h2spec/h2spec')
/** Seconds until h2spec gives up on a response. */
const CASE_SECONDS = '5'
const RUN_MS = 300_000

type TransportName = 'plaintext' | 'TLS'
const stops: (() => Promise<unknown>)[] = []
const ports: Record<TransportName, number> = { plaintext: 0, TLS: 0 }
let directory = ''

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'h2spec-'))
  stops.push(() => rm(directory, { recursive: true, force: true }))
  const echo = await startEcho({ name: 'echo' })
  stops.push(() => echo.close())
  const [plaintext = 0, tls = 0] = await findFreePorts(2)
  Object.assign(ports, { plaintext, TLS: tls })
  const { certificate, privateKey } = makeCertificate({ name: 'localhost', hosts: ['127.0.0.1'] })
  await writeFile(join(directory, 'tls.crt'), certificate)
  await writeFile(join(directory, 'tls.key'), privateKey)
  const routes = [{ backends: [{ host: `127.0.0.1:${echo.port}` }] }]
  const file = join(directory, 'config.yaml')
  await writeFile(
    file,
    stringify({
      binds: [
        { port: plaintext, listeners: [{ name: 'http', routes }] },
        { port: tls, listeners: [{ name: 'https', protocol: 'HTTPS', tls: { cert: 'tls.crt', key: 'tls.key' }, routes }] },
      ],
    }),
  )
  const dataplane = await startDataplane({ config: { file } })
  stops.push(() => dataplane.stop())
}, 100_000)

afterAll(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop()
})

interface Report {
  /** Number of cases that ran. */
  readonly count: number
  /** Names of the cases that failed, sorted. */
  readonly failed: readonly string[]
}

/** Runs all cases. Rejects if h2spec wrote no report. */
async function runH2spec(transport: TransportName): Promise<Report> {
  const report = join(directory, `${transport}.xml`)
  const tlsOptions = transport === 'TLS' ? ['-t', '-k'] : []
  const args = ['-h', '127.0.0.1', '-p', String(ports[transport]), '-o', CASE_SECONDS, '-j', report, ...tlsOptions]
  // Exits with 1 if a case failed.
  await new Promise((resolve) => execFile(H2SPEC, args, { timeout: RUN_MS, maxBuffer: 1 << 26 }, resolve))
  return parseReport(await readFile(report, 'utf8'))
}

/** Parses a JUnit report: `<testcase package="http2/6.7" classname="Sends a PING frame with ACK" time="0.01">`, with `<error>` if the case failed. */
function parseReport(xml: string): Report {
  const cases = [...xml.matchAll(/<testcase package="([^"]*)" classname="([^"]*)"[^>]*?(?:\/>|>([^]*?)<\/testcase>)/g)]
  const failed = cases.filter(([, , , content = '']) => /<(?:error|failure|skipped)/.test(content)).map(([, section, title]) => `${section}: ${title}`)
  return { count: cases.length, failed: failed.toSorted() }
}

test.each(['plaintext', 'TLS'] as const)(
  'HTTP/2 over %s passes h2spec except for the known failures',
  async (transport) => {
    const { count, failed } = await runH2spec(transport)
    expect(count).toBe(145)
    expect(failed).toEqual(
      knownFailures
        .filter(({ only = transport }) => only === transport)
        .map(({ name }) => name)
        .toSorted(),
    )
  },
  RUN_MS,
)
