import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { createConfigMap, fail, KEY, printManifest } from './common.ts'

/** Source that `proxyctl plugin init` writes. */
const pluginSource = `import { definePlugin } from '@proxy/plugin'

export default definePlugin<{ tenants: string[] }>({
  configSchema: { type: 'object', properties: { tenants: { type: 'array', items: { type: 'string' } } }, required: ['tenants'] },
  setup: ({ config, metrics }) => ({
    async request(c, next) {
      const tenant = c.req.header('x-tenant') ?? ''
      if (!config.tenants.includes(tenant)) {
        metrics.count('unknown_tenant')
        return c.json({ error: 'unknown tenant' }, 403)
      }
      await next()
      c.header('x-served-for', tenant)
    },
  }),
})
`

/** Test that `proxyctl plugin init` writes. */
const pluginTest = `import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testPlugin } from '@proxy/plugin/testing'
import plugin from './index.ts'

test('known tenants pass, and others do not reach the upstream', async () => {
  const { send } = await testPlugin(plugin, { config: { tenants: ['a'] } })
  const known = await send('/', { init: { headers: { 'x-tenant': 'a' } } })
  assert.equal(known.response.headers.get('x-served-for'), 'a')
  const unknown = await send('/', { init: { headers: { 'x-tenant': 'b' } } })
  assert.equal(unknown.response.status, 403)
  assert.equal(unknown.forwarded, undefined)
})
`

/** A gateway whose route has the plugin. The route responds itself, so that the plugin can be tried without an upstream. `name` is a scalar of YAML. */
const pluginManifests = (name: string): string => `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: ${name} }
spec:
  gatewayClassName: proxy
  listeners: [{ name: http, port: 8080, protocol: HTTP }]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: ${name} }
spec:
  parentRefs: [{ name: ${name} }]
  rules:
    - matches: [{ path: { type: PathPrefix, value: / } }]
---
apiVersion: proxy.dev/v1alpha1
kind: ProxyPolicy
metadata: { name: ${name} }
spec:
  targetRefs: [{ group: gateway.networking.k8s.io, kind: HTTPRoute, name: ${name} }]
  traffic:
    directResponse: { status: 200, body: "behind the plugin\\n" }
    plugins:
      - name: ${name}
        source: { configMapRef: { name: ${name}, key: index.ts } }
        config: { tenants: [a, b] }
`

/** Writes a directory with a plugin, its ConfigMap, and manifests of a gateway that uses it. Returns the files. Rejects with a ToolError. */
export async function writePlugin(directory: string, name: string): Promise<string[]> {
  const files = {
    [KEY]: pluginSource,
    'index.test.ts': pluginTest,
    'manifests.yaml': pluginManifests(stringify(name).trim()),
    'plugin.yaml': printManifest(createConfigMap(name, undefined, pluginSource)),
  }
  await mkdir(directory, { recursive: true }).catch((error: Error) => fail(error.message))
  for (const [file, text] of Object.entries(files)) await writeFile(join(directory, file), text, { flag: 'wx' }).catch((error: Error) => fail(error.message))
  return Object.keys(files).map((file) => join(directory, file))
}
