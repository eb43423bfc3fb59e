import { exactlyOneOf, ref, type Definitions } from '../schema.ts'
import { key, object, port, string } from './shared.ts'

/**
 * One section of a ProxyPolicy for one target. The operator sends policies unmerged; the data plane orders and merges them when it
 * compiles a config version.
 */
export const policyDefinitions: Definitions = {
  Policy: {
    ...object(
      'One section of one ProxyPolicy, or the content of a BackendTLSPolicy, for one target.',
      {
        key: key('<section>/<namespace>/<name>:<target index>'),
        policy: object(
          'The source object, for statuses, logs and `proxyctl explain`.',
          { kind: { type: 'string', enum: ['ProxyPolicy', 'BackendTLSPolicy'], description: 'Kind.' }, namespace: string('Namespace.'), name: string('Name.') },
          ['kind', 'namespace', 'name'],
        ),
        creationTimestamp: string('RFC 3339. Same target, same field: the oldest wins, then `namespace/name`.'),
        target: ref('PolicyTarget'),
        frontend: ref('Frontend'),
        traffic: ref('Traffic'),
        backend: ref('BackendFull'),
        backendTls: ref('BackendTlsValidation'),
      },
      ['key', 'policy', 'target'],
    ),
    'x-kubernetes-validations': [exactlyOneOf('frontend', 'traffic', 'backend', 'backendTls')],
  },
  PolicyTarget: object(
    'What a policy is attached to.',
    {
      kind: {
        type: 'string',
        enum: ['Gateway', 'ListenerSet', 'HTTPRoute', 'GRPCRoute', 'Service', 'Backend', 'InferencePool'],
        description: 'Kind of the target.',
      },
      namespace: string('Namespace.'),
      name: string('Name.'),
      section: string('Listener, rule or sub-backend name.'),
      port: port('Service port.'),
    },
    ['kind', 'namespace', 'name'],
  ),
}
