import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseAllDocuments, stringify } from 'yaml'
import { loadConfigFile } from '../../../dataplane/config/file/file.ts'
import { ConfigFileError } from '../../../dataplane/config/file/problem.ts'
import { findTroubles } from '../../../operator/program/report.ts'
import { readManifests } from '../../../operator/proxyctl/files/manifests.ts'

const GATEWAY_API = 'gateway.networking.k8s.io'

const policy = (spec: object): object => ({
  apiVersion: 'proxy.dev/v1alpha1',
  kind: 'ProxyPolicy',
  metadata: { name: 'policy' },
  spec: { targetRefs: [{ group: GATEWAY_API, kind: 'Gateway', name: 'gateway' }], ...spec },
})
const backend = (spec: object): object => ({ apiVersion: 'proxy.dev/v1alpha1', kind: 'ProxyBackend', metadata: { name: 'backend' }, spec })
const gateway = (spec: object): object => ({
  apiVersion: `${GATEWAY_API}/v1`,
  kind: 'Gateway',
  metadata: { name: 'gateway' },
  spec: { gatewayClassName: 'proxy', ...spec },
})
const route = (spec: object): object => ({
  apiVersion: `${GATEWAY_API}/v1`,
  kind: 'HTTPRoute',
  metadata: { name: 'route' },
  spec: { parentRefs: [{ name: 'gateway' }], ...spec },
})

/** Ways to complete a block that is a part of an object, by its first field. The block is valid if one of them is. */
const PARTS: Readonly<Record<string, readonly ((spec: object) => object)[]>> = {
  traffic: [policy],
  frontend: [policy],
  backend: [policy],
  ai: [backend, (spec) => policy({ backend: spec })],
  mcp: [backend, (spec) => policy({ backend: spec })],
  static: [backend],
  dynamicForwardProxy: [backend],
  policies: [
    (spec) => backend({ static: { host: 'example.com', port: 80 }, ...spec }),
    (spec) => backend({ ai: { provider: { providerA: {} } }, ...spec }),
    (spec) => backend({ mcp: { targets: [{ name: 'a', static: { host: 'example.com', port: 80 } }] }, ...spec }),
  ],
  listeners: [gateway],
  rules: [route],
}

/** First fields of a config file. */
const CONFIG_FIELDS = ['config', 'binds', 'backends', 'services', 'secrets', 'policies', 'llm', 'mcp']

/**
 * Checks a YAML block of a guide as `proxyctl lint` would: objects with `apiVersion`, a config file of the data plane, or a part of an object. Objects and files
 * that the block refers to need not exist. Returns the problems.
 */
export async function checkYaml(text: string): Promise<string[]> {
  // Placeholders are no YAML; only config files have them.
  if (text.includes('${')) return checkConfigFile(text)
  const documents = parseAllDocuments(text)
  const syntax = documents.flatMap(({ errors }) => errors.map(({ message }) => message))
  if (syntax.length > 0) return syntax
  const [first] = documents.map((document) => document.toJS() as Record<string, unknown>)
  if (first === undefined || typeof first !== 'object') return ['is empty']
  if ('apiVersion' in first) return checkManifests(text)
  const field = Object.keys(first)[0] ?? ''
  const results: string[][] = []
  for (const complete of PARTS[field] ?? []) results.push(await checkManifests(stringify(complete(first))))
  if (CONFIG_FIELDS.includes(field)) results.push(await checkConfigFile(text))
  // The form with the fewest problems is the one that the author meant.
  const [best] = results.toSorted((a, b) => a.length - b.length)
  return best ?? [`"${field}" is no field that a block may begin with; write a complete object, or <!-- not checked: reason --> before the block`]
}

async function checkManifests(text: string): Promise<string[]> {
  return withFile(text, async (file) => {
    const { problems, translation, overlays } = await readManifests(file)
    const troubles = findTroubles(translation.statuses).filter(({ message }) => !/not found|not been fetched/.test(message))
    return [...problems.map((problem) => problem.text), ...troubles.map(({ message }) => message), ...overlays.map(({ message }) => message)]
  })
}

/** An environment in which every variable is set. */
const everyVariable: Readonly<Record<string, string>> = new Proxy({}, { get: () => 'https://example.com/' })

async function checkConfigFile(text: string): Promise<string[]> {
  return withFile(text, async (file) => {
    try {
      return [...(await loadConfigFile(file, { env: everyVariable })).warnings]
    } catch (error) {
      if (!(error instanceof ConfigFileError)) throw error
      return error.problems.filter((problem) => !/no such file/.test(problem))
    }
  })
}

async function withFile<T>(text: string, use: (file: string) => Promise<T>): Promise<T> {
  const directory = await mkdtemp(join(tmpdir(), 'guide-'))
  try {
    const file = join(directory, 'block.yaml')
    await writeFile(file, text)
    return await use(file)
  } finally {
    await rm(directory, { recursive: true })
  }
}
