import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { checkDataplane } from './dry-run.ts'

let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'dry-run-'))
})
afterAll(() => rm(directory, { recursive: true }))

async function check(text: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
  const file = join(directory, 'gateway.yaml')
  await writeFile(file, text)
  return (await checkDataplane({ env, file, version: '0.0.0' })).replaceAll(`${directory}/`, '')
}

test('a dry run prints the addresses and ports of a valid file', async () => {
  expect(
    await check(
      "llm: { listen: '127.0.0.1:4100', models: { m: { openai: {} } } }\nmcp: { addresses: ['::1'], a: { url: 'http://b' } }\nbinds: [{ port: 80, addresses: [], listeners: [] }]\n",
    ),
  ).toBe('gateway.yaml: valid; listens on *:80, 127.0.0.1:4100, [::1]:3000\n')
})

test('a dry run prints warnings, and reports that no port is opened', async () => {
  expect(await check('config: {}\n')).toBe('gateway.yaml: valid; no port to listen on; add models, mcp or binds, unless an operator adds listeners\n')
  const bad = 'llm: { listen: "*", models: { m: { openai: {} } }, policies: { authorization: { policy: { matchExpressions: ["1 +"] } } } }\n'
  expect(await check(bad)).toMatch(
    /^warning: gateway\.yaml:1:\d+: llm\.policies\.authorization.*\nwarning: gateway\.yaml:1:\d+: llm\.listen: port 4000 .* \[PX3016\]\ngateway\.yaml: valid; listens on \*:4000\n$/,
  )
})

test('a dry run rejects what a start would reject', async () => {
  await expect(check('binds: 1\n')).rejects.toThrow('gateway.yaml:1:1: binds: must be an array, is 1')
  await expect(check('config: {}\n', { CONNECTION_MIN_TERMINATION_DEADLINE: 'soon' })).rejects.toThrow('CONNECTION_MIN_TERMINATION_DEADLINE is "soon"')
  await expect(checkDataplane({ env: {}, file: undefined, version: '0.0.0' })).rejects.toThrow('neither -f nor XDS_ADDRESS is given')
  expect(await checkDataplane({ env: { XDS_ADDRESS: 'http://127.0.0.1:1' }, file: undefined, version: '0.0.0' })).toBe(
    'settings: valid; the config comes from http://127.0.0.1:1\n',
  )
})
