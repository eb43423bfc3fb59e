import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { startFixture, type Fixture } from './fixture.ts'
import { startGateway, type E2eGateway } from './gateway.ts'

let fixture: Fixture
let others: Fixture[]
let gateway: E2eGateway
let directory: string
const runs = new Map<string, Promise<Map<string, string>>>()

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'conformance-'))
  fixture = await startFixture()
  others = [await startFixture(0, 'other'), await startFixture(0, 'another')]
  const [second, third] = others.map(({ port }) => port)
  const target = { name: 'a', port: fixture.port }
  gateway = await startGateway({
    one: { targets: [target] },
    stateless: { targets: [target], sessionRouting: 'Stateless' },
    three: { targets: [target, { name: 'b', port: second ?? 0 }, { name: 'c', port: third ?? 0 }], prefixMode: 'Never' },
  })
})
afterAll(async () => {
  await gateway?.stop()
  for (const server of [fixture, ...(others ?? [])]) await server?.close()
  await rm(directory, { recursive: true, force: true })
})

const SUITE = new URL('../../../node_modules/@modelcontextprotocol/conformance/dist/index.js', import.meta.url).pathname

/** Runs all scenarios of the official suite; returns `passed, failed` by scenario. */
function conformance(url: string): Promise<Map<string, string>> {
  let run = runs.get(url)
  if (run === undefined) {
    run = new Promise((resolve) => {
      execFile(process.execPath, [SUITE, 'server', '--url', url, '--suite', 'all'], { cwd: directory, timeout: 550_000 }, (_, output) => {
        resolve(new Map([...output.matchAll(/^[✓✗] ([\w-]+): (\d+ passed, \d+ failed)/gm)].map(([, scenario = '', verdict = '']) => [scenario, verdict])))
      })
    })
    runs.set(url, run)
  }
  return run
}

const failedOf = (verdicts: ReadonlyMap<string, string>): string[] =>
  [...verdicts].flatMap(([scenario, verdict]) => (verdict.endsWith(' 0 failed') ? [] : [scenario])).toSorted()

test('with one target each scenario has the same result as without the gateway (row 51)', async () => {
  const direct = await conformance(`http://localhost:${fixture.port}/mcp`)
  const through = await conformance(gateway.url('one'))
  expect(direct.size).toBeGreaterThanOrEqual(32)
  expect(Object.fromEntries(through)).toEqual(Object.fromEntries(direct))
  // Neither the fixture nor a listener without hostname checks Host.
  expect(failedOf(direct)).toEqual(['dns-rebinding-protection'])
})

/** Expected failures: with several targets, resource URIs have prefixes, which the suite does not expect. */
const differs = [
  'dns-rebinding-protection',
  'resources-read-binary',
  'resources-read-text',
  'resources-subscribe',
  'resources-templates-read',
  'resources-unsubscribe',
]

test('with three targets all scenarios pass except those with fixed resource URIs', async () => {
  expect(failedOf(await conformance(gateway.url('three')))).toEqual(differs)
})

test('with Stateless all scenarios pass except those in which the server sends requests to the client', async () => {
  const asking = ['elicitation-sep1034-defaults', 'elicitation-sep1330-enums', 'tools-call-elicitation', 'tools-call-sampling']
  expect(failedOf(await conformance(gateway.url('stateless')))).toEqual(['dns-rebinding-protection', ...asking])
})
