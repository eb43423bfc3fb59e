import { expect, test } from '@jest/globals'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stringify } from 'yaml'
import type { DeployObject, LevelParameters } from '../types.ts'
import { renderServer } from './render.ts'

const server = {
  backend: { namespace: 'default', name: 'tools', uid: 'u1' },
  name: 'mcp-tools-github-12345678',
  image: 'registry.example.com/mcp/github:v1',
  command: ['server', '--stdio', '${HOME} $(HOME)'],
  env: { TOKEN: 'a$(PATH)$b', A: 'b' },
}
const settings = {
  image: { registry: 'registry.example.com', repository: 'proxy', tag: 'v1.0.0' },
  version: '1.0.0',
  xds: { host: 'proxy.proxy-system.svc.cluster.local', port: 9978, isTls: false },
}
const render = (parameters: LevelParameters = {}) => renderServer({ server, parameters, settings })
const objectsOf = (parameters: LevelParameters = {}): readonly DeployObject[] => {
  const result = render(parameters)
  if (!result.ok) throw new Error(result.message)
  return result.objects
}
interface Pod {
  readonly initContainers: readonly { readonly image: string; readonly env: readonly { readonly value: string }[] }[]
  readonly containers: readonly object[]
}
const podOf = (objects: readonly DeployObject[]): Pod => (objects[2] as unknown as { spec: { template: { spec: Pod } } }).spec.template.spec

test('a server has a ServiceAccount, a Service and a Deployment', () => {
  const golden = join(import.meta.dirname, 'testdata/default.yaml')
  const text = stringify(objectsOf(), { lineWidth: 0 })
  if (process.env['UPDATE_GOLDEN'] === '1' && process.env['CI'] !== 'true') writeFileSync(golden, text)
  expect(text).toBe(readFileSync(golden, 'utf8'))
})

test('the bridge starts the command as written: a kubelet and the config file replace nothing in it', () => {
  const value = podOf(objectsOf()).initContainers[0]?.env[0]?.value ?? ''
  // As kubelets do.
  const config = JSON.parse(value.replaceAll('$$', '$')) as { mcp: { server: { command: string[] } } }
  expect(config.mcp.server.command).toEqual(['server', '--stdio', '$${HOME} $(HOME)'])
})

test('overlays of the GatewayClass and then of the Gateway change the objects, and its image is that of the bridge', () => {
  const deployment = (limits: object) => ({ spec: { replicas: 2, template: { spec: { containers: [{ name: 'server', resources: { limits } }] } } } })
  const objects = objectsOf({
    class: { image: { tag: 'v2' }, mcp: { deployment: deployment({ memory: '1Gi', cpu: '1' }), serviceAccount: { metadata: { annotations: { role: 'a' } } } } },
    gateway: {
      mcp: { deployment: deployment({ memory: '2Gi' }), service: { spec: { internalTrafficPolicy: 'Local' } } },
      deployment: { spec: { replicas: 9 } },
    },
  })
  expect(objects[0]?.metadata.annotations).toEqual({ role: 'a' })
  expect(objects[1]).toMatchObject({ spec: { internalTrafficPolicy: 'Local' } })
  expect(objects[2]).toMatchObject({ spec: { replicas: 2 } })
  const { initContainers, containers } = podOf(objects)
  expect(initContainers[0]?.image).toBe('registry.example.com/proxy:v2')
  expect(containers).toEqual([expect.objectContaining({ name: 'server', resources: expect.objectContaining({ limits: { memory: '2Gi', cpu: '1' } }) })])
})

test('mistakes of overlays are errors, and unknown fields are warnings', () => {
  expect(render({ gateway: { mcp: { deployment: { spec: { replicas: 'two' } } } } })).toMatchObject({
    ok: false,
    message: expect.stringMatching(/^mcp\.deployment overlay of the Gateway: .*replicas.* \[PX1022\]$/),
  })
  expect(render({ class: { mcp: { service: { spec: { prots: [] } } } } })).toMatchObject({
    ok: true,
    warnings: [expect.stringMatching(/^mcp\.service overlay of the GatewayClass: .*prots/)],
  })
})
