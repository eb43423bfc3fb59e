import { PLUGIN_IMAGE_PATTERN } from '../plugin-image.ts'
import { anyObject, choice, exactlyOneOf, list, object, ref, string, type Definitions } from '../schema.ts'
import { whenProtecting } from './shared.ts'

export const pluginDefinitions: Definitions = {
  Plugin: object(
    'A plugin: Hono middleware in TypeScript or JavaScript that runs in the request path, by default in a worker thread of its own. See the guide on plugins. The worker thread isolates faults; it is no boundary against hostile code.',
    {
      name: string('Name, unique in the list; shown in logs and metrics.', {
        minLength: 1,
        maxLength: 63,
        pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$',
      }),
      source: ref('PluginSource'),
      config: anyObject('Passed to `setup` of the plugin, after it was validated against the `configSchema` of the plugin.'),
      secrets: list(ref('PluginSecret'), 'Secrets that `setup` of the plugin receives. A new value loads a new version of the plugin.', 1, 16, {
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['name'],
      }),
      fetch: ref('PluginFetch'),
      phase: choice(
        ['BeforeAuthorization', 'AfterAuthorization', 'BeforeBackend'],
        'When the plugin runs. BeforeAuthorization: before all authentication and authorization. AfterAuthorization: after them, and before rate limits. BeforeBackend: after all policies that change the request.',
        { default: 'AfterAuthorization' },
      ),
      body: choice(
        ['None', 'Buffered', 'Streamed'],
        'Bodies that the plugin can read and replace. None: neither. Buffered: those of request and response, up to maxBufferSize; a longer one is a failure. Streamed: both in chunks, as they arrive, of any length.',
        { default: 'None' },
      ),
      limits: ref('PluginLimits'),
      isolation: choice(
        ['Worker', 'Process', 'InProcess'],
        'Where the plugin runs. Worker: in a worker thread. Process: in a process of its own with the permission model of Node, which denies files, network, processes and threads; needs Node 26.3, which the image has. InProcess: in the thread that handles the request, where a call costs microseconds and nothing isolates faults; only for trusted plugins, and only if ProxyParameters set `plugins.inProcess`.',
        { default: 'Worker' },
      ),
      kv: choice(
        ['Memory', 'Redis'],
        'Where the values of `kv` are. Memory: in each replica. Redis: in the server of `config.redis`, shared by all replicas, Gateways and clusters that use this server and have a policy of the same namespace and name; `kv` rejects while it cannot be used.',
        { default: 'Memory' },
      ),
      failureMode: choice(
        ['FailClosed', 'FailOpen'],
        'Handling of a failure of the plugin: an error, a timeout, or a plugin that cannot be loaded. FailClosed responds with 500, or 504 for a timeout. FailOpen continues without the plugin.',
        { default: 'FailClosed' },
      ),
      when: whenProtecting,
    },
    ['name', 'source'],
  ),
  PluginSource: {
    ...object('Where the source of a plugin is.', {
      configMapRef: ref(
        'PluginConfigMapReference',
        'A key of a ConfigMap, with one module. It can import `@proxy/plugin` and some modules of Node; other packages must be bundled into it.',
      ),
      image: string(
        'A container image or OCI artifact with the module, as `registry/repository@sha256:digest`. The operator fetches it from the registry. Only if ProxyParameters list it in `plugins.images`.',
        { maxLength: 512, pattern: PLUGIN_IMAGE_PATTERN },
      ),
      path: string('Path of the module in the image, such as `plugins/index.ts`. Links are not followed.', {
        minLength: 1,
        maxLength: 1024,
        pattern: '^/?[^/]+(/[^/]+)*$',
      }),
      file: string('Path of the module, relative to the config file (`-f`). Not for policies in a cluster.', { minLength: 1, maxLength: 4096 }),
    }),
    'x-kubernetes-validations': [
      exactlyOneOf('configMapRef', 'image', 'file'),
      { rule: 'has(self.image) == has(self.path)', message: 'image and path must be set together' },
    ],
  },
  PluginConfigMapReference: object(
    'A key of a ConfigMap. If it is missing, or in another namespace without a ReferenceGrant, the plugin fails.',
    {
      name: string('Name of the ConfigMap.', { minLength: 1, maxLength: 253 }),
      namespace: string(
        'Namespace of the ConfigMap; default: that of the policy. Another one needs a ReferenceGrant there, from ProxyPolicies (`group: proxy.dev`) of the namespace of the policy to ConfigMaps.',
        { minLength: 1, maxLength: 63 },
      ),
      key: string('Key.', { minLength: 1, maxLength: 253 }),
    },
    ['name', 'key'],
  ),
  PluginFetch: object(
    'Network access of the plugin by `fetch` of `setup`. Without it, every call of `fetch` fails.',
    {
      hosts: list(
        string('`host`, for the default ports of http and https, or `host:port`.', {
          minLength: 1,
          maxLength: 259,
          pattern: '^[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[1-9][0-9]{0,4})?$',
        }),
        'Hosts that the plugin can call.',
        1,
        32,
        { 'x-kubernetes-list-type': 'set' },
      ),
    },
    ['hosts'],
  ),
  PluginSecret: object(
    'A secret of a plugin.',
    {
      name: string('Name in `secrets` of `setup`.', { minLength: 1, maxLength: 63, pattern: '^[a-zA-Z][a-zA-Z0-9_]*$' }),
      secretRef: ref('SecretKeyReference', 'Where the value is. If it is missing, the plugin fails.'),
    },
    ['name', 'secretRef'],
  ),
  SecretKeyReference: object(
    'A key of a Secret in the namespace of the referring object.',
    {
      name: string('Name of the Secret.', { minLength: 1, maxLength: 253 }),
      key: string('Key.', { minLength: 1, maxLength: 253 }),
    },
    ['name', 'key'],
  ),
  PluginLimits: object('Limits of a plugin. A plugin that exceeds them does not affect other routes.', {
    timeout: ref(
      'Duration',
      'Time that the plugin may take before it calls `next()`, and again after it. InProcess: a plugin that blocks the thread is not stopped. Default: 1s.',
    ),
    memory: string('Memory of the worker thread, from 16Mi; it is replaced when it exceeds the limit. Not used by InProcess.', {
      default: '64Mi',
      pattern: '^(1[6-9]|[2-9][0-9]|[1-9][0-9]{2,3})Mi$',
      maxLength: 6,
    }),
  }),
  ConfigMapKeyReference: object(
    'A key of a ConfigMap in the namespace of the referring object. If it is missing, features that need it reject all requests.',
    {
      name: string('Name of the ConfigMap.', { minLength: 1, maxLength: 253 }),
      key: string('Key.', { minLength: 1, maxLength: 253 }),
    },
    ['name', 'key'],
  ),
}
