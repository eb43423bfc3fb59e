import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { mkdtemp, rename, rm, unlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from '../../../e2e/harness/wait.ts'
import { createConfigStore } from '../store.ts'
import { loadConfigFile } from './file.ts'
import { followConfigFile } from './follow.ts'
import { ConfigFileError } from './problem.ts'
import { readConfigFile } from './read.ts'

let directory = ''
let config = ''
const closers: (() => void)[] = []
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'plugin-files-'))
  config = join(directory, 'config.yaml')
})
afterEach(async () => {
  for (const close of closers.splice(0)) close()
  await rm(directory, { recursive: true })
})

const plugins = '[{ name: p, source: { file: index.ts } }]'
const text = `binds:
- port: 8080
  listeners:
  - policies: { plugins: ${plugins} }
    routes:
    - name: a
      policies: { plugins: ${plugins} }
policies:
- key: traffic/shop/own:0
  policy: { kind: ProxyPolicy, namespace: shop, name: own }
  target: { kind: Gateway, namespace: default, name: config }
  traffic: { plugins: ${plugins} }
`
const write = async (code: string): Promise<void> => {
  await writeFile(join(directory, 'new.ts'), code)
  await rename(join(directory, 'new.ts'), join(directory, 'index.ts'))
}
const problemsOf = (options = {}): Promise<unknown> =>
  loadConfigFile(config, options).then(
    () => [],
    (error: unknown) => (error instanceof ConfigFileError ? error.problems.map((problem) => problem.replace(`${directory}/`, '')) : error),
  )

test('sources of plugins are read from files, and belong to the policy that names them', async () => {
  await writeFile(config, text)
  await write('export default 1')
  const { messages, warnings } = await loadConfigFile(config)
  const sources = messages.flatMap(({ kind, message }) => (kind === 'policy' ? (message.traffic?.plugins ?? []).map(({ source }) => source) : []))
  const source = (owner: string): object => ({ configMapRef: { code: 'export default 1', file: 'index.ts', owner } })
  expect([sources, warnings]).toEqual([[source('shop/own'), source('default/listener.listener0'), source('default/route.a')], []])
})

test('plugins of one name in two policies are two plugins, also with their source in the config file', async () => {
  await writeFile(config, text.replaceAll('file: index.ts', 'configMapRef: { code: export default 1 }'))
  const { messages } = await loadConfigFile(config)
  const owners = messages.flatMap(({ kind, message }) =>
    kind === 'policy' ? (message.traffic?.plugins ?? []).map(({ source }) => source.configMapRef?.owner) : [],
  )
  expect(owners).toEqual(['shop/own', 'default/listener.listener0', 'default/route.a'])
})

test('an edit of the source of a plugin is applied, and its last version stays while the file is missing', async () => {
  await writeFile(config, text)
  await write('export default 1')
  const store = createConfigStore()
  const errors: string[] = []
  const { close } = await followConfigFile({
    path: config,
    store,
    first: await readConfigFile(config),
    onError: (error) => errors.push(...error.problems),
  })
  closers.push(close)
  const codes = (): unknown[] => [...store.snapshot().policies.values()].map(({ traffic }) => traffic?.plugins?.[0]?.source.configMapRef?.code)
  expect(codes()).toEqual(['export default 1', 'export default 1', 'export default 1'])
  await write('export default 2')
  await until(() => codes()[0] === 'export default 2')
  await unlink(join(directory, 'index.ts'))
  await until(() => errors.length > 0)
  expect(errors[0]).toContain('traffic.plugins[0].source.file: index.ts: no such file [PX3012]')
  expect(codes()[0]).toBe('export default 2')
  await write('export default 3')
  await until(() => codes()[2] === 'export default 3')
})

test('a syntax error in the source of a plugin is a warning with file, line and column', async () => {
  await writeFile(config, `binds: [{ port: 1, listeners: [{ policies: { plugins: ${plugins} } }] }]`)
  await write('const a: number = 1\nlet b = ;')
  const { warnings } = await loadConfigFile(config)
  expect(warnings.map((warning) => warning.replace(`${directory}/`, ''))).toEqual([
    'config.yaml:1:77: binds[0].listeners[0].policies.plugins[0].source.file: index.ts:2:9: Expression expected; the plugin cannot be loaded [PX3010]',
  ])
})

test('sources of plugins that are missing, too long or not permitted make the config file invalid', async () => {
  await writeFile(config, `binds: [{ port: 1, listeners: [{ policies: { plugins: ${plugins} } }] }]`)
  const at = 'config.yaml:1:77: binds[0].listeners[0].policies.plugins[0].source.file:'
  expect(await problemsOf()).toEqual([`${at} index.ts: no such file [PX3012]`])
  await write(' '.repeat(1_048_577))
  expect(await problemsOf()).toEqual([`${at} index.ts: 1048577 bytes; at most 1048576 are read [PX3012]`])
  expect(await problemsOf({ placeholders: 'literal' })).toEqual([
    expect.stringContaining(`${at} is not read from a file that is used together with XDS_ADDRESS`),
  ])
})
