import { anyObject, choice, object, ref, string, type Definitions } from '../schema.ts'

export const pluginDefinitions: Definitions = {
  Plugin: object(
    'A plugin: Hono middleware in TypeScript or JavaScript that runs in the request path, in a worker thread of its own. See the guide on plugins. The worker thread isolates faults; it is no boundary against hostile code.',
    {
      name: string('Name, unique in the list; shown in logs and metrics.', {
        minLength: 1,
        maxLength: 63,
        pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$',
      }),
      source: ref('PluginSource'),
      config: anyObject('Passed to `setup` of the plugin, after it was validated against the `configSchema` of the plugin.'),
      phase: choice(
        ['BeforeAuthorization', 'AfterAuthorization', 'BeforeBackend'],
        'When the plugin runs. BeforeAuthorization: before all authentication and authorization. AfterAuthorization: after them, and before rate limits. BeforeBackend: after all policies that change the request.',
        { default: 'AfterAuthorization' },
      ),
      body: choice(
        ['None', 'Buffered'],
        'Bodies that the plugin can read and replace. None: neither. Buffered: those of request and response, up to maxBufferSize; a longer one is a failure.',
        { default: 'None' },
      ),
      limits: ref('PluginLimits'),
      failureMode: choice(
        ['FailClosed', 'FailOpen'],
        'Handling of a failure of the plugin: an error, a timeout, or a plugin that cannot be loaded. FailClosed responds with 500, or 504 for a timeout. FailOpen continues without the plugin.',
        { default: 'FailClosed' },
      ),
    },
    ['name', 'source'],
  ),
  PluginSource: object(
    'Where the source of a plugin is.',
    {
      configMapRef: ref(
        'ConfigMapKeyReference',
        'A key of a ConfigMap in the namespace of the policy, with one module. It can import `@proxy/plugin` and some modules of Node; other packages must be bundled into it.',
      ),
    },
    ['configMapRef'],
  ),
  PluginLimits: object('Limits of a plugin. A plugin that exceeds them does not affect other routes.', {
    timeout: ref('Duration', 'Time that the plugin may take before it calls `next()`, and again after it. Default: 1s.'),
    memory: string('Memory of the worker thread, from 16Mi; it is replaced when it exceeds the limit.', {
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
