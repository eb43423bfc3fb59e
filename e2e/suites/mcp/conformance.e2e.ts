import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { startFixture, type Fixture } from './fixture.ts'
import { startFixture2 } from './fixture2.ts'
import { startGateway, type E2eGateway } from './gateway.ts'

let fixtures: Readonly<Record<'old' | 'new' | 'other' | 'another', Fixture>>
let gateway: E2eGateway
let directory: string

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'conformance-'))
  fixtures = { old: await startFixture(), new: await startFixture2(), other: await startFixture(0, 'other'), another: await startFixture(0, 'another') }
  const [old, modern] = [
    { name: 'a', port: fixtures.old.port },
    { name: 'a', port: fixtures.new.port },
  ]
  const others = [
    { name: 'b', port: fixtures.other.port },
    { name: 'c', port: fixtures.another.port },
  ]
  gateway = await startGateway({
    old: { targets: [old] },
    new: { targets: [modern] },
    stateless: { targets: [old], sessionRouting: 'Stateless' },
    three: { targets: [old, ...others], prefixMode: 'Never' },
    mixed: { targets: [modern, ...others], prefixMode: 'Never' },
  })
})
afterAll(async () => {
  await gateway?.stop()
  for (const server of Object.values(fixtures ?? {})) await server.close()
  await rm(directory, { recursive: true, force: true })
})

const OLDER = new URL('../../../node_modules/@modelcontextprotocol/conformance/dist/index.js', import.meta.url).pathname
const NEWEST = new URL('../../../node_modules/@modelcontextprotocol/conformance-next/dist/index.js', import.meta.url).pathname
/** Program and arguments of each run: version 0.1.16 of the suite, and the two sets of requirements of the newest version. */
const sets = {
  'suite 0.1.16': [OLDER, '--suite', 'all'],
  '2025-11-25': [NEWEST, '--requirements', '2025-11-25'],
  '2026-07-28': [NEWEST, '--requirements', '2026-07-28'],
} as const
type RequirementSet = keyof typeof sets
/** `passed, failed` by scenario. */
type Results = ReadonlyMap<string, string>

/** Runs the scenarios of a set. On a busy machine the suite leaves out some checks, so that a retry must run it again. */
function conformance(set: RequirementSet, url: string): Promise<Results> {
  const [suite, ...options] = sets[set]
  return new Promise((resolve) => {
    execFile(process.execPath, [suite, 'server', '--url', url, ...options], { cwd: directory, timeout: 550_000, maxBuffer: 64 * 1024 * 1024 }, (_, output) => {
      const lines = output.matchAll(/^[✓✗] ([\w-]+): (\d+ passed, \d+ failed)/gm)
      resolve(new Map([...lines].map(([, scenario = '', result = '']) => [scenario, result])))
    })
  })
}

const failedOf = (results: Results): string[] => [...results].flatMap(([scenario, result]) => (result.endsWith(' 0 failed') ? [] : [scenario])).toSorted()

const direct = (name: keyof typeof fixtures): string => `http://localhost:${fixtures[name].port}/mcp`

/** The official SDKs do not implement the extension. */
const tasks = [
  'tasks-capability-negotiation',
  'tasks-dispatch-and-envelope',
  'tasks-lifecycle',
  'tasks-mrtr-composition',
  'tasks-mrtr-input',
  'tasks-request-headers',
  'tasks-request-state-removal',
  'tasks-required-task-error',
  'tasks-wire-fields',
]

test.each<[RequirementSet, 'old' | 'new', number, string[]]>([
  ['suite 0.1.16', 'old', 32, []],
  ['2025-11-25', 'old', 33, []],
  ['2026-07-28', 'new', 50, tasks],
])('with one target each scenario of %s has the same result as without the gateway (row 51)', async (set, server, count, failed) => {
  const without = await conformance(set, direct(server))
  const through = await conformance(set, gateway.url(server))
  expect(without.size).toBeGreaterThanOrEqual(count)
  expect(Object.fromEntries(through)).toEqual(Object.fromEntries(without))
  expect(failedOf(without)).toEqual(failed)
})

/** With several targets, resource URIs have prefixes, which the suite does not expect. */
const prefixed = ['resources-read-binary', 'resources-read-text', 'resources-templates-read']
const subscribed = ['resources-subscribe', 'resources-unsubscribe']
/** Requests for input of a server with sessions have keys of the gateway, which the suite does not expect, or have no form in a session. */
const keyed = [
  'input-required-result-basic-elicitation',
  'input-required-result-capability-check',
  'input-required-result-multi-round',
  'input-required-result-multiple-input-requests',
  'input-required-result-non-tool-request',
  'input-required-result-request-state',
  'input-required-result-result-type',
  'input-required-result-tampered-state',
]

test.each<[string, RequirementSet, string, string[]]>([
  ['three old servers', 'suite 0.1.16', 'three', [...prefixed, ...subscribed]],
  ['three old servers', '2025-11-25', 'three', [...prefixed, ...subscribed]],
  ['a new server and two old ones', '2025-11-25', 'mixed', [...prefixed, ...subscribed]],
  ['a new server and two old ones', '2026-07-28', 'mixed', [...prefixed, ...tasks]],
  ['a new server', '2025-11-25', 'new', []],
  // An old server rejects neither missing capabilities nor headers of arguments by the codes of the revision.
  ['an old server', '2026-07-28', 'old', [...keyed, ...tasks, 'http-custom-header-server-validation', 'server-stateless']],
])('with %s all scenarios of %s pass through the gateway except those that cannot', async (_servers, set, backend, failed) => {
  expect(failedOf(await conformance(set, gateway.url(backend)))).toEqual(failed.toSorted())
})

test('with Stateless all scenarios pass except those in which the server sends requests to the client', async () => {
  const asking = ['elicitation-sep1034-defaults', 'elicitation-sep1330-enums', 'tools-call-elicitation', 'tools-call-sampling']
  expect(failedOf(await conformance('suite 0.1.16', gateway.url('stateless')))).toEqual(asking)
})
