import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { parse, stringify } from 'yaml'
import packageJson from '../package.json' with { type: 'json' }
import { startDataplane, type Dataplane } from '../e2e/harness/program/dataplane.ts'
import { findFreePorts } from '../e2e/harness/program/ports.ts'

const DIRECTORY = join(import.meta.dirname, 'compose')
const readYaml = async (name: string): Promise<unknown> => parse(await readFile(join(DIRECTORY, name), 'utf8'))

interface Service {
  readonly image: string
  readonly command?: readonly string[]
  readonly ports?: readonly string[]
  readonly volumes?: readonly string[]
  readonly depends_on?: readonly string[]
}
interface Compose {
  readonly services: Readonly<Record<string, Service>>
  readonly volumes: object
}
let compose: Compose
let directory: string
const running: Dataplane[] = []
beforeAll(async () => {
  compose = (await readYaml('compose.yaml')) as Compose
  directory = await mkdtemp(join(tmpdir(), 'compose-'))
})
afterAll(async () => {
  for (const dataplane of running) await dataplane.stop(100)
  await rm(directory, { recursive: true })
})

// There is no engine here: these are the mistakes that `docker compose up` would report, and ports that would be open to others.
test('compose.yaml has images with a version, files and services that exist, and ports on loopback only', async () => {
  const { services, volumes } = compose
  expect(Object.keys(services)).toEqual(['gateway', 'model', 'redis', 'prometheus', 'grafana'])
  for (const { image, ports = [], volumes: mounts = [], depends_on: needed = [] } of Object.values(services)) {
    expect(image).toMatch(/:v?\d+\.\d+/)
    for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:\d+:\d+$/)
    for (const name of needed) expect(services).toHaveProperty(name)
    for (const [source = '', target = ''] of mounts.map((mount) => mount.split(':'))) {
      expect(target).toMatch(/^\//)
      if (source.startsWith('.')) await stat(resolve(DIRECTORY, source))
      else expect(volumes).toHaveProperty(source)
    }
  }
  for (const name of ['gateway', 'model']) expect(services[name]?.image).toBe(`\${REGISTRY:-localhost}/proxy:v${packageJson.version}`)
})

test('the gateway of compose.yaml reaches the model, and Prometheus its metrics', async () => {
  const [model = 0, port = 0] = await findFreePorts(2)
  const upstream = (await readYaml('model.yaml')) as { readonly binds: readonly object[] }
  const gateway = (await readYaml('gateway.yaml')) as { readonly llm: { readonly models: { readonly mock: { readonly openai: { readonly url: string } } } } }
  expect(gateway.llm.models.mock.openai.url).toBe('http://model:8080/v1')
  await start('model.yaml', { binds: [{ ...upstream.binds[0], port: model, addresses: ['127.0.0.1'] }] })
  // Without the budget, which needs Redis.
  const models = { mock: { openai: { url: `http://127.0.0.1:${model}/v1` } } }
  const dataplane = await start('gateway.yaml', { llm: { listen: `127.0.0.1:${port}`, models } })
  const response = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'mock', messages: [{ role: 'user', content: 'hello' }] }),
  })
  expect(await response.json()).toMatchObject({ choices: [{ message: { content: 'Hello from the mock model.' } }], usage: { total_tokens: 15 } })
  expect(await dataplane.metrics()).toMatch(/^proxy_requests_total\{.*status="200"/m)
  expect(await readYaml('prometheus.yml')).toMatchObject({ scrape_configs: [{ static_configs: [{ targets: ['gateway:15020'] }] }] })
})

async function start(name: string, config: object): Promise<Dataplane> {
  const file = join(directory, name)
  await writeFile(file, stringify(config))
  const dataplane = await startDataplane({ config: { file } })
  running.push(dataplane)
  return dataplane
}
