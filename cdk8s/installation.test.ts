import { expect, test } from '@jest/globals'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { App, Chart, Testing } from 'cdk8s'
import { parse, parseAllDocuments } from 'yaml'
import { Installation } from './installation.ts'
import { ProxyBackend, ProxyParameters, ProxyPolicy } from './objects.ts'
import type { GivenValues } from './values.ts'

/** What `helm template` makes of charts/proxy, checked by e2e/suites/install/chart.e2e.ts: of `default` everything, of others what differs from it. */
const GOLDENS = join(import.meta.dirname, '../e2e/suites/install/testdata')
const release = { name: 'proxy', namespace: 'proxy-system', managedBy: 'Helm' }

interface Made {
  readonly kind: string
  readonly metadata: { readonly name: string }
}

const readGolden = (name: string, file: string): string => readFileSync(join(GOLDENS, name, file), 'utf8')
const byKey = (objects: readonly Made[]): Record<string, Made> =>
  Object.fromEntries(objects.map((object) => [`${object.kind}/${object.metadata.name}`, object]))
function readObjects(name: string): Record<string, Made> {
  const documents = parseAllDocuments(readGolden(name, 'out.yaml'))
  return byKey(documents.map((document) => document.toJS() as Made | null).filter((object) => object !== null))
}

test.each(readdirSync(GOLDENS))('code and chart install the same: case %s', (name) => {
  const values = parse(readGolden(name, 'values.yaml')) as GivenValues
  const made = byKey(Testing.synth(new Installation(new App(), 'installation', { release, values })) as Made[])
  const expected = name === 'default' ? readObjects(name) : { ...readObjects('default'), ...readObjects(name) }
  for (const [, key = ''] of readGolden(name, 'out.yaml').matchAll(/^# missing: (.*)$/gm)) delete expected[key]
  expect(made).toEqual(expected)
})

test('another release has names of its own, and says who manages it', () => {
  const [first] = Testing.synth(new Installation(new App(), 'installation', { release: { name: 'edge', namespace: 'edge' } })) as Made[]
  expect(first?.metadata).toMatchObject({ name: 'edge-proxy', namespace: 'edge', labels: { 'app.kubernetes.io/managed-by': 'cdk8s' } })
})

test('our kinds are constructs with typed specs', () => {
  const chart = new Chart(new App(), 'objects')
  const metadata = { name: 'a', namespace: 'b' }
  new ProxyParameters(chart, 'parameters', { metadata, spec: { logging: { level: 'debug' } } })
  new ProxyBackend(chart, 'backend', { metadata, spec: { static: { host: 'a.example', port: 80 } } })
  const targetRefs = [{ group: 'gateway.networking.k8s.io' as const, kind: 'Gateway' as const, name: 'gw' }]
  new ProxyPolicy(chart, 'policy', { metadata, spec: { targetRefs, traffic: { timeouts: { request: '1s' } } } })
  expect((Testing.synth(chart) as Made[]).map(({ kind, metadata: { name } }) => `${kind} ${name}`)).toEqual([
    'ProxyParameters a',
    'ProxyBackend a',
    'ProxyPolicy a',
  ])
})
