import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse, parseAllDocuments } from 'yaml'
import { readChunk } from '../../../operator/source/document.ts'
import { breakConstraints, embed, listPlaces, listRules, listVariants } from '../../../operator/source/schemas/samples-testing.ts'
import { connect, install, type ApiServer } from './api-server.ts'
import { readGatewayApiCrds } from './create.ts'

const IN_FLIGHT = 8
const ROOT = join(import.meta.dirname, '../../..')
const GATEWAY_API = process.env['GATEWAY_API'] ?? ''
const INFERENCE_API = process.env['INFERENCE_API'] ?? ''

interface Crd {
  readonly metadata: { name: string }
  readonly spec: { readonly group: string; readonly scope: string; readonly names: { readonly kind: string; readonly plural: string } }
}
interface Written {
  readonly title: string
  readonly object: { readonly apiVersion: string; readonly kind: string }
}

const crds = new Map<string, Crd>()
let server: ApiServer
beforeAll(async () => {
  server = await connect()
  const pool = parse(readFileSync(join(INFERENCE_API, 'config/crd/bases/inference.networking.k8s.io_inferencepools.yaml'), 'utf8')) as Crd
  const all = [...((await readGatewayApiCrds()) as Crd[]), pool]
  await install(server, all)
  for (const crd of all) crds.set(`${crd.spec.group}/${crd.spec.names.kind}`, crd)
})
afterAll(() => server.close())

const crdOf = ({ object: { apiVersion, kind } }: Written): Crd | undefined => crds.get(`${apiVersion.split('/')[0]}/${kind}`)

/** Objects of whose validity `proxyctl lint` and the API server have different opinions. */
async function findDisagreements(samples: readonly Written[]): Promise<{ readonly wrong: string[]; readonly accepted: number }> {
  const queue = [...samples]
  const wrong: string[] = []
  let accepted = 0
  const work = async (): Promise<void> => {
    for (let sample = queue.pop(); sample; sample = queue.pop()) {
      const { spec } = crdOf(sample) as Crd
      const found = readChunk(JSON.stringify(sample.object)).findings.filter(({ severity }) => severity === 'error')
      const path = `/apis/${sample.object.apiVersion}${spec.scope === 'Cluster' ? '' : '/namespaces/default'}/${spec.names.plural}`
      const body = { ...sample.object, metadata: { ...(sample.object as { metadata?: object }).metadata, namespace: undefined, name: 'a' } }
      const { status, causes } = await server.call('POST', `${path}?dryRun=All&fieldValidation=Strict`, body)
      if (status < 400) accepted++
      if (status < 400 !== (found.length === 0))
        wrong.push(
          `${sample.title}: ${found[0] ? `${found[0].field}: ${found[0].message}` : 'accepted'}; API server: ${causes[0] ? `${causes[0].field}: ${causes[0].message}` : 'accepted'}`,
        )
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, work))
  return { wrong, accepted }
}

/** Objects of Gateway API in the files below a directory. */
function readObjects(directory: string): Written[] {
  const files = readdirSync(directory, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.yaml'))
  const written = files.flatMap((file) =>
    parseAllDocuments(readFileSync(join(directory, file), 'utf8')).map((document) => ({ title: file, object: document.toJS() as Written['object'] | null })),
  )
  return written.filter(
    (each): each is Written =>
      typeof each.object?.apiVersion === 'string' && crdOf(each as Written) !== undefined && readChunk(JSON.stringify(each.object)).items.length > 0,
  )
}

test('the API server rejects each object that breaks a rule or a constraint of the CRDs', async () => {
  const broken = listRules().map(({ place, self, rule }) => embed(place, self ?? null, `${rule.message}: ${JSON.stringify(self)}`))
  const { wrong, accepted } = await findDisagreements([...listPlaces().flatMap(breakConstraints), ...broken])
  expect(wrong.slice(0, 10)).toEqual([])
  expect(accepted).toBe(0)
}, 600_000)

test('the API server accepts the same objects with one optional field each', async () => {
  const samples = listPlaces().flatMap(listVariants)
  const { wrong, accepted } = await findDisagreements(samples)
  expect(wrong.slice(0, 10)).toEqual([])
  // Both verdicts must be frequent.
  expect(Math.min(accepted, samples.length - accepted)).toBeGreaterThan(200)
}, 600_000)

test.each([
  ['invalid examples of Gateway API', join(GATEWAY_API, 'hack/invalid-examples'), 30],
  ['examples of Gateway API', join(GATEWAY_API, 'examples'), 80],
  ['manifests of the translation tests', join(ROOT, 'operator/translate/testdata'), 300],
  ['manifests of the examples', join(ROOT, 'e2e/examples'), 50],
])(
  'the API server and lint agree on the %s',
  async (_, directory, atLeast) => {
    const samples = readObjects(directory)
    expect(samples.length).toBeGreaterThanOrEqual(atLeast)
    expect((await findDisagreements(samples)).wrong).toEqual([])
  },
  600_000,
)

test('gen/gateway-api is what `make gateway-api` writes', () => {
  expect(() =>
    execFileSync(join(ROOT, '.ci/exec'), ['node', 'api/codegen/gateway-api.ts', '--check', GATEWAY_API, INFERENCE_API], { cwd: ROOT, stdio: 'pipe' }),
  ).not.toThrow()
})
