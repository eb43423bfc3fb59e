import { expect, test } from '@jest/globals'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { App, Chart, Testing } from 'cdk8s'
import { parse, parseAllDocuments } from 'yaml'
import { Installation } from './installation.ts'
import { ProxyBackend, ProxyParameters, ProxyPolicy } from './objects.ts'
import type { ValueOverrides } from './values.ts'

/** Output of `helm template charts/proxy`, which e2e/suites/install/chart.e2e.ts verifies: all objects for `default`, the differences from it for other cases. */
const GOLDENS = join(import.meta.dirname, '../e2e/suites/install/testdata')
const release = { name: 'proxy', namespace: 'proxy-system', managedBy: 'Helm' }

interface Manifest {
  readonly kind: string
  readonly metadata: { readonly name: string }
}

const readGolden = (name: string, file: string): string => readFileSync(join(GOLDENS, name, file), 'utf8')
const byKey = (objects: readonly Manifest[]): Record<string, Manifest> =>
  Object.fromEntries(objects.map((object) => [`${object.kind}/${object.metadata.name}`, object]))
function readObjects(name: string): Record<string, Manifest> {
  const documents = parseAllDocuments(readGolden(name, 'out.yaml'))
  return byKey(documents.map((document) => document.toJS() as Manifest | null).filter((object) => object !== null))
}

test.each(readdirSync(GOLDENS))('Installation creates the objects of the Helm chart in case %s', (name) => {
  const values = parse(readGolden(name, 'values.yaml')) as ValueOverrides
  const made = byKey(Testing.synth(new Installation(new App(), 'installation', { release, values })) as Manifest[])
  const expected = name === 'default' ? readObjects(name) : { ...readObjects('default'), ...readObjects(name) }
  for (const [, key = ''] of readGolden(name, 'out.yaml').matchAll(/^# missing: (.*)$/gm)) delete expected[key]
  expect(made).toEqual(expected)
})

test('Installation names its objects after the release and labels them as managed by cdk8s', () => {
  const [first] = Testing.synth(new Installation(new App(), 'installation', { release: { name: 'edge', namespace: 'edge' } })) as Manifest[]
  expect(first?.metadata).toMatchObject({ name: 'edge-proxy', namespace: 'edge', labels: { 'app.kubernetes.io/managed-by': 'cdk8s' } })
})

test('constructs of the three kinds have typed specs', () => {
  const chart = new Chart(new App(), 'objects')
  const metadata = { name: 'a', namespace: 'b' }
  new ProxyParameters(chart, 'parameters', { metadata, spec: { logging: { level: 'debug' } } })
  new ProxyBackend(chart, 'backend', { metadata, spec: { static: { host: 'a.example', port: 80 } } })
  const targetRefs = [{ group: 'gateway.networking.k8s.io' as const, kind: 'Gateway' as const, name: 'gw' }]
  new ProxyPolicy(chart, 'policy', { metadata, spec: { targetRefs, traffic: { timeouts: { request: '1s' } } } })
  expect((Testing.synth(chart) as Manifest[]).map(({ kind, metadata: { name } }) => `${kind} ${name}`)).toEqual([
    'ProxyParameters a',
    'ProxyBackend a',
    'ProxyPolicy a',
  ])
})
