import { expect, test } from '@jest/globals'
import { readSettings } from './settings.ts'

test('settings without variables are the defaults of operator.md §7.2', () => {
  expect(readSettings({ POD_NAME: 'pod' })).toEqual({
    logLevel: 'info',
    xdsHost: 'proxy.proxy-system.svc.cluster.local',
    xdsPort: 9978,
    clusterDomain: 'cluster.local',
    xdsMode: 'plaintext',
    isXdsAuthenticated: true,
    namespaceSelectors: [],
    classParameters: new Map(),
    proxyImage: {},
    backendGrants: 'route-and-policy',
    isInferenceEnabled: false,
    isLeaderElected: true,
    isProcessMeasured: false,
    namespace: 'proxy-system',
    identity: 'pod',
    healthPort: 9093,
    metricsPort: 9092,
    adminPort: 9095,
    kubeconfig: undefined,
    registryFiles: { ca: undefined, config: undefined },
  })
})

test.each<[string, Record<string, string>, object]>([
  ['an empty value', { PROXY_XDS_MODE: '', PROXY_XDS_SERVICE_PORT: ' ' }, { xdsMode: 'plaintext', xdsPort: 9978 }],
  ['a log level that is not known is info', { PROXY_LOG_LEVEL: 'chatty' }, { logLevel: 'info' }],
  [
    'the stream is found in the namespace of the pod',
    { POD_NAMESPACE: 'infra', PROXY_XDS_SERVICE_NAME: 'op' },
    { namespace: 'infra', xdsHost: 'op.infra.svc.cluster.local' },
  ],
  ['xDS mode true means tls', { PROXY_XDS_MODE: 'true' }, { xdsMode: 'tls' }],
  ['authentication off', { PROXY_XDS_AUTH: 'false' }, { isXdsAuthenticated: false }],
  ['InferencePools on', { PROXY_ENABLE_INFER_EXT: 'true' }, { isInferenceEnabled: true }],
  ['metrics of the process on', { PROXY_ENABLE_BUILTIN_DEFAULT_METRICS: 'true' }, { isProcessMeasured: true }],
  ['files for registries', { PROXY_REGISTRY_CA_FILE: '/a/ca.crt', PROXY_REGISTRY_CONFIG_FILE: '' }, { registryFiles: { ca: '/a/ca.crt', config: undefined } }],
  ['leader election off', { PROXY_DISABLE_LEADER_ELECTION: 'true' }, { isLeaderElected: false }],
  ['grants', { PROXY_BACKEND_REF_GRANT_MODE: 'route' }, { backendGrants: 'route' }],
  ['image parts', { PROXY_IMAGE_TAG: 'v1', PROXY_IMAGE_REGISTRY: 'registry.example.com' }, { proxyImage: { registry: 'registry.example.com', tag: 'v1' } }],
  [
    'selectors',
    { PROXY_DISCOVERY_NAMESPACE_SELECTORS: '[{"matchLabels":{"a":"b"}},{"matchExpressions":[{"key":"c","operator":"In","values":["d"]}]}]' },
    { namespaceSelectors: [{ matchLabels: { a: 'b' } }, { matchExpressions: [{ key: 'c', operator: 'In', values: ['d'] }] }] },
  ],
  [
    'parameters of classes',
    { PROXY_GATEWAY_CLASS_PARAMETERS_REFS: '{"proxy":{"name":"n","namespace":"s"}}' },
    { classParameters: new Map([['proxy', { group: 'proxy.dev', kind: 'ProxyParameters', name: 'n', namespace: 's' }]]) },
  ],
])('%s', (_, env, expected) => {
  expect(readSettings(env)).toMatchObject(expected)
})

test('the address of the stream is in the domain of the cluster', () => {
  expect(readSettings({}, 'corp.example')).toMatchObject({ xdsHost: 'proxy.proxy-system.svc.corp.example', clusterDomain: 'corp.example' })
  expect(readSettings({ PROXY_XDS_SERVICE_HOST: 'xds.example' }, 'corp.example').xdsHost).toBe('xds.example')
})

test.each<[string, Record<string, string>, string]>([
  ['an invalid port', { PROXY_XDS_SERVICE_PORT: '99999' }, 'PROXY_XDS_SERVICE_PORT=99999: write a port from 1 to 65535'],
  ['an unknown mode', { PROXY_XDS_MODE: 'mtls' }, 'PROXY_XDS_MODE=mtls: write plaintext or tls'],
  ['an invalid boolean', { PROXY_XDS_AUTH: 'maybe' }, 'PROXY_XDS_AUTH=maybe: write true or false'],
  ['selectors that are not JSON', { PROXY_DISCOVERY_NAMESPACE_SELECTORS: '[' }, 'PROXY_DISCOVERY_NAMESPACE_SELECTORS=[: is not JSON'],
  ['selectors that are not an array', { PROXY_DISCOVERY_NAMESPACE_SELECTORS: '{}' }, 'write a JSON array of label selectors'],
  ['a field that selectors do not have', { PROXY_DISCOVERY_NAMESPACE_SELECTORS: '[{"labels":{}}]' }, '[0].labels is not known'],
  [
    'an operator that is not known',
    { PROXY_DISCOVERY_NAMESPACE_SELECTORS: '[{"matchExpressions":[{"key":"a","operator":"in"}]}]' },
    '[0].matchExpressions[0].operator: use In',
  ],
  ['In without values', { PROXY_DISCOVERY_NAMESPACE_SELECTORS: '[{"matchExpressions":[{"key":"a","operator":"In"}]}]' }, 'In needs an array of strings'],
  ['parameters without a namespace', { PROXY_GATEWAY_CLASS_PARAMETERS_REFS: '{"proxy":{"name":"n"}}' }, 'proxy.namespace must be set'],
  ['parameters with a blank name', { PROXY_GATEWAY_CLASS_PARAMETERS_REFS: '{"proxy":{"name":" ","namespace":"s"}}' }, 'proxy.name must be set'],
  ['an invalid switch for InferencePools', { PROXY_ENABLE_INFER_EXT: 'x' }, 'PROXY_ENABLE_INFER_EXT=x: write true or false'],
])('%s: an error that names the variable, the value and the fix', (_, env, message) => {
  expect(() => readSettings(env)).toThrow(message)
})

test('one error names all invalid settings', () => {
  expect(() => readSettings({ PROXY_XDS_MODE: 'x', PROXY_XDS_AUTH: 'y' })).toThrow(/PROXY_XDS_MODE=x[\s\S]*PROXY_XDS_AUTH=y/)
})
