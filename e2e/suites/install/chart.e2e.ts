import { describe, expect, test } from '@jest/globals'
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse, parseAllDocuments, stringify } from 'yaml'
import { helm, run } from './cluster.ts'

const CASES = join(import.meta.dirname, 'testdata')
const CHART = 'charts/proxy'
// No --kube-version: a helm that was built without a version reports v1.20.0 and must render the chart, too.
const TEMPLATE = ['template', 'proxy', CHART, '-n', 'proxy-system']

interface Rendered {
  readonly kind: string
  readonly metadata: { readonly name: string }
}

const keyOf = ({ kind, metadata }: Rendered): string => `${kind}/${metadata.name}`

async function render(values: string): Promise<Map<string, Rendered>> {
  const text = await run('helm', [...TEMPLATE, '-f', '-'], values)
  return new Map(
    parseAllDocuments(text)
      .map((document) => document.toJS() as Rendered | null)
      .filter((object) => object !== null)
      .map((object) => [keyOf(object), object]),
  )
}

test('helm lint reports nothing', async () => {
  for (const chart of [CHART, 'charts/proxy-crds']) expect(await helm('lint', '--strict', chart)).not.toMatch(/WARNING|ERROR/)
})

describe('helm template', () => {
  const pending = render('{}')
  test.each(readdirSync(CASES))('renders the expected objects of case %s', async (name) => {
    const values = readFileSync(join(CASES, name, 'values.yaml'), 'utf8')
    const [defaults, objects] = await Promise.all([pending, render(values)])
    const changed = [...objects].filter(([key, object]) => name === 'default' || JSON.stringify(defaults.get(key)) !== JSON.stringify(object))
    const missing = [...defaults.keys()].filter((key) => !objects.has(key))
    const text = [...changed.map(([, object]) => stringify(object, { lineWidth: 0 })), ...missing.map((key) => `# missing: ${key}\n`)].join('---\n')
    const golden = join(CASES, name, 'out.yaml')
    if (process.env['UPDATE_GOLDEN'] === '1' && process.env['CI'] !== 'true') writeFileSync(golden, text)
    expect(text).toBe(existsSync(golden) ? readFileSync(golden, 'utf8') : '')
  })
})

test('the charts that `make release` packs render the objects of the chart directories', async () => {
  const { version } = parse(readFileSync(join(CHART, 'Chart.yaml'), 'utf8')) as { readonly version: string }
  const out = mkdtempSync(join(tmpdir(), 'charts-'))
  try {
    await run(process.execPath, ['images/release/main.ts', '--version', `v${version}`, '--registry', 'registry.example/team', '--no-images', '--out', out])
    for (const chart of ['proxy', 'proxy-crds']) {
      const packed = join(out, `${chart}-${version}.tgz`)
      await helm('lint', '--strict', packed)
      const template = (path: string, ...options: string[]): Promise<string> => helm('template', 'proxy', path, '-n', 'proxy-system', ...options)
      expect(await template(packed)).toBe(await template(`charts/${chart}`, '--set', 'image.registry=registry.example/team'))
    }
  } finally {
    rmSync(out, { recursive: true })
  }
})

test('values that are null or absent are treated as empty', async () => {
  const empty = { commonLabels: null, podAnnotations: null, resources: null, discoveryNamespaceSelectors: null, gatewayClassParametersRefs: null }
  const controller = { extraEnv: null, pluginRegistries: null, xds: { tls: { enabled: null } }, service: { extraLabels: null } }
  const objects = await render(JSON.stringify({ ...empty, controller, inferenceExtension: { enabled: null } }))
  expect(objects).toEqual(await render(JSON.stringify({ podAnnotations: { 'prometheus.io/scrape': null } })))
})

test('the lines of NOTES.txt create a Gateway when they are pasted into a shell', () => {
  // An indented EOF would not end the here-document.
  expect(readFileSync(join(CHART, 'templates/NOTES.txt'), 'utf8')).toMatch(/^kubectl apply -f - <<EOF\napiVersion: [^]*\nEOF\n/m)
})

test('names that YAML would parse as numbers stay strings', async () => {
  const objects = await render(JSON.stringify({ fullnameOverride: '123', serviceAccount: { name: '456' }, controller: { priorityClassName: '7' } }))
  const deployment = objects.get('Deployment/123') as unknown as { metadata: object; spec: { template: { spec: object } } }
  expect(deployment.metadata).toMatchObject({ name: '123' })
  expect(deployment.spec.template.spec).toMatchObject({ serviceAccountName: '456', priorityClassName: '7' })
  for (const { metadata } of objects.values()) expect(typeof metadata.name).toBe('string')
})

test.each([
  ['an unknown value', { controller: { replicas: 2 } }, /additional properties 'replicas' not allowed/],
  [
    'parameters of a class without namespace',
    { gatewayClassParametersRefs: { proxy: { name: 'a' } } },
    /gatewayClassParametersRefs\.proxy\.namespace must be set/,
  ],
  [
    'parameters of a class with a blank name',
    { gatewayClassParametersRefs: { proxy: { name: ' ', namespace: 'b' } } },
    /gatewayClassParametersRefs\.proxy\.name must be set/,
  ],
  ['a selector with an unknown operator', { discoveryNamespaceSelectors: [{ matchExpressions: [{ key: 'a', operator: 'Is' }] }] }, /operator/],
  ['an unknown grant mode', { controller: { backendRefGrantMode: 'policy' } }, /backendRefGrantMode.*value must be one of/],
  ['an unknown log level', { controller: { logLevel: 'verbose' } }, /logLevel.*value must be one of/],
  ['a number as image tag, of which YAML would drop zeros', { image: { tag: 1.1 } }, /image\/tag.*got number, want string/],
  ['a port out of range', { controller: { service: { ports: { gwGrpc: 0 } } } }, /gwGrpc/],
  ['an environment variable without value', { controller: { extraEnv: { A: {} } } }, /extraEnv\.A: write either value or valueFrom/],
  [
    'an environment variable with two values',
    { controller: { extraEnv: { A: { value: 'a', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } } } } },
    /extraEnv\.A: write either/,
  ],
  [
    'a ServiceMonitor without a Service',
    { monitoring: { serviceMonitor: { enabled: true } }, controller: { service: { enabled: false } } },
    /monitoring\.serviceMonitor\.enabled needs controller\.service\.enabled/,
  ],
  ['a scrape interval without unit', { monitoring: { podMonitor: { interval: '30' } } }, /podMonitor\/interval/],
  [
    'a CA of registries in two objects',
    { controller: { pluginRegistries: { ca: { configMapName: 'a', secretName: 'b' } } } },
    /pluginRegistries\.ca: write either configMapName or secretName/,
  ],
  ['an environment variable that the chart sets', { controller: { extraEnv: { POD_NAME: 'x' } } }, /POD_NAME/],
])('%s is rejected before anything is installed', async (_, values, message) => {
  await expect(render(JSON.stringify(values))).rejects.toThrow(message)
})
