import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { bundleDataplane } from '../../images/bundle.ts'
import type { Example } from '../harness/example/example.ts'
import { hasConfigFile, prepareExample, startExample, type PreparedExample, type RunningExample } from '../harness/example/example-run.ts'
import type { Expectations } from '../harness/example/expectations.ts'
import { startOperator, type Operator } from '../harness/program/operator.ts'

const here = fileURLToPath(new URL('.', import.meta.url))
const names = readdirSync(here, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map((entry) => entry.name)
const modules = new Map<string, { example: Example; cases: Expectations }>()
for (const name of names) {
  const { default: example } = (await import(join(here, name, 'run.ts'))) as { default: Example }
  const { default: cases } = (await import(join(here, name, 'expect.ts'))) as { default: Expectations }
  modules.set(name, { example, cases })
}

// One operator serves all Gateways; each example has its own namespace and data plane.
let operator: Operator | undefined
let root: string
let bundle: string
const prepared = new Map<string, PreparedExample>()

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'examples-'))
  bundle = await bundleDataplane(join(root, 'bundle'))
  const manifests = join(root, 'manifests')
  for (const name of names) prepared.set(name, await prepareExample(name, join(here, name), join(hasConfigFile(join(here, name)) ? root : manifests, name)))
  operator = await startOperator({ directory: manifests })
})

afterAll(async () => {
  await operator?.stop()
  for (const { early } of prepared.values()) for (const upstream of early.values()) await upstream.close()
  await rm(root, { recursive: true, force: true })
})

test('every example has manifests or a config file, a run.ts, an expect.ts and a README', async () => {
  for (const name of names) {
    const files = await readdir(join(here, name))
    expect(files).toEqual(expect.arrayContaining(['README.md', 'expect.ts', 'run.ts', hasConfigFile(join(here, name)) ? 'config.yaml' : 'manifests.yaml']))
  }
})

test('the operator reports no problem in the examples except the intended reference without a grant', () => {
  const problems = operator?.events.filter((event) => event.event === 'error' || event.event === 'condition') ?? []
  // The first translation reports key sets that have not been fetched yet.
  const isExpected = ({ reason, message }: { reason: string; message: string }): boolean =>
    reason === 'RefNotPermitted' || message.includes('has not been fetched yet')
  expect(problems.filter((event) => event.event !== 'condition' || !isExpected(event))).toEqual([])
})

describe.each(names)('%s', (name) => {
  const { example, cases } = modules.get(name) ?? { example: {}, cases: {} }
  let running: RunningExample
  beforeAll(async () => {
    running = await startExample(prepared.get(name) as PreparedExample, operator, bundle)
  })
  afterAll(async () => {
    await running?.stop()
  })

  for (const command of example.commands ?? []) {
    test(`prints the expected output of the command: ${command.title}`, async () => {
      expect(await running.runCommand(command)).toMatch(command.prints)
    })
  }
  for (const [sentence, expectation] of Object.entries(cases)) {
    test(sentence, () => expectation(running))
  }
})
