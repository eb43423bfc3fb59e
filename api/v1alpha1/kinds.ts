import { GROUP, VERSION } from '../names.ts'
import { choice, exactlyOneOf, integer, keyedList, list, map, object, ref, string, type Definitions, type Schema } from '../schema.ts'

/** A printer column of `kubectl get`. */
interface Column {
  name: string
  type: 'string' | 'date'
  jsonPath: string
  description?: string
  /** 1: only in `kubectl get -o wide`. */
  priority?: 1
}

/** A kind of the API: the parts of its CustomResourceDefinition besides the schema, which is the definition of the same name. */
export interface Kind {
  kind: 'ProxyPolicy' | 'ProxyBackend' | 'ProxyParameters'
  plural: string
  singular: string
  shortNames: readonly string[]
  categories: readonly string[]
  labels: Readonly<Record<string, string>>
  columns: readonly Column[]
}

const categories = ['proxy']
const labels = { app: 'proxy', 'app.kubernetes.io/name': 'proxy', 'gateway.networking.k8s.io/policy': 'Direct' }
const age: Column = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' }
const text = (name: string, jsonPath: string, description: string): Column => ({ name, type: 'string', jsonPath, description })
const wide = (name: string, jsonPath: string, description: string): Column => ({ ...text(name, jsonPath, description), priority: 1 })
/** A field of the condition `type` of a status. Several ancestors give several values, separated by spaces. */
const conditionPath = (type: string, conditions: string, field: 'status' | 'reason' | 'message'): string => `${conditions}[?(@.type=="${type}")].${field}`
const ofObject = '.status.conditions'
const ofAncestors = '.status.ancestors[*].conditions'

export const kinds: readonly Kind[] = [
  {
    kind: 'ProxyPolicy',
    plural: 'proxypolicies',
    singular: 'proxypolicy',
    shortNames: ['prpol'],
    categories,
    labels,
    columns: [
      text('Accepted', conditionPath('Accepted', ofAncestors, 'status'), 'Whether the policy is valid, for each Gateway'),
      text('Reason', conditionPath('Accepted', ofAncestors, 'reason'), 'Reason of Accepted; PartiallyValid policies reject requests or lack a part'),
      text('Attached', conditionPath('Attached', ofAncestors, 'status'), 'Whether the policy is in force, for each Gateway'),
      text('Target', '.spec.targetRefs[*].name', 'Names of the targets'),
      wide('Target Kind', '.spec.targetRefs[*].kind', 'Kinds of the targets'),
      wide('Selector Kind', '.spec.targetSelectors[*].kind', 'Kinds of targets that are selected by labels'),
      wide('Attached Reason', conditionPath('Attached', ofAncestors, 'reason'), 'Reason of Attached'),
      age,
    ],
  },
  {
    kind: 'ProxyBackend',
    plural: 'proxybackends',
    singular: 'proxybackend',
    shortNames: ['prbe'],
    categories,
    labels,
    columns: [
      text('Accepted', conditionPath('Accepted', ofObject, 'status'), 'Whether the backend is valid'),
      text('Reason', conditionPath('Accepted', ofObject, 'reason'), 'Reason of Accepted'),
      wide('Message', conditionPath('Accepted', ofObject, 'message'), 'Message of Accepted'),
      age,
    ],
  },
  { kind: 'ProxyParameters', plural: 'proxyparameters', singular: 'proxyparameters', shortNames: ['prpar'], categories, labels, columns: [age] },
]

const envelope = (kind: Kind['kind'], description: string): Schema =>
  object(
    description,
    {
      apiVersion: string('Version of the schema of this object.', { enum: [`${GROUP}/${VERSION}`] }),
      kind: string('Kind of this object.', { enum: [kind] }),
      metadata: ref('ObjectMeta'),
      spec: ref(`${kind}Spec`),
      status: ref(`${kind}Status`),
    },
    ['apiVersion', 'kind', 'metadata', 'spec'],
  )

export const kindDefinitions: Definitions = {
  ProxyPolicy: envelope(
    'ProxyPolicy',
    'Policies for client connections (frontend), requests (traffic) and connections to backends (backend), attached to Gateways, routes, Services or backends.',
  ),
  ProxyBackend: envelope(
    'ProxyBackend',
    'A destination other than a Service, for backendRefs: a fixed host, the host of the request, LLM providers, MCP servers, a cloud service.',
  ),
  ProxyParameters: envelope(
    'ProxyParameters',
    'Deployment settings of data planes, for parametersRef of a GatewayClass or infrastructure.parametersRef of a Gateway.',
  ),
  ProxyBackendSpec: object(
    'Exactly one of ai, static, dynamicForwardProxy, mcp, cloudBackend, a2a, and optionally policies.',
    {
      ai: ref('AIBackend'),
      static: ref('StaticBackend'),
      dynamicForwardProxy: ref('DynamicForwardProxyBackend'),
      mcp: ref('MCPBackend'),
      cloudBackend: ref('CloudBackend'),
      a2a: ref('A2ABackend'),
      policies: ref('BackendFull', 'Policies for connections to this backend; they merge field by field with those of ProxyPolicies and take precedence.'),
    },
    [],
    [
      exactlyOneOf('ai', 'static', 'dynamicForwardProxy', 'mcp', 'cloudBackend', 'a2a'),
      {
        rule: '!has(self.policies) || !has(self.policies.ai) || has(self.ai)',
        message: 'policies.ai may only be set on a backend of type ai',
        fieldPath: '.policies.ai',
        reason: 'FieldValueForbidden',
      },
      {
        rule: '!has(self.policies) || !has(self.policies.mcp) || has(self.mcp)',
        message: 'policies.mcp may only be set on a backend of type mcp',
        fieldPath: '.policies.mcp',
        reason: 'FieldValueForbidden',
      },
    ],
  ),
  ProxyBackendStatus: object('Whether the backend is usable.', {
    conditions: ref('Conditions'),
    rollouts: list(ref('AIModelRolloutState'), 'Rollouts of models.', 0, 64),
  }),
  Conditions: keyedList('type', ref('Condition'), 'Conditions, one of each type.', undefined, 8),
  Condition: object(
    'One aspect of the state of an object (metav1 Condition).',
    {
      type: string('Type of the condition.', {
        maxLength: 316,
        pattern: '^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$',
      }),
      status: choice(['True', 'False', 'Unknown'], 'Whether the condition is true.'),
      observedGeneration: integer('Generation of the object that the condition was computed from.', 0),
      lastTransitionTime: string('When status last changed.', { format: 'date-time' }),
      reason: string('Reason as one word.', { minLength: 1, maxLength: 1024, pattern: '^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$' }),
      message: string('Reason as text.', { maxLength: 32768 }),
    },
    ['type', 'status', 'lastTransitionTime', 'reason', 'message'],
  ),
  ObjectMeta: object('Standard object metadata (metav1 ObjectMeta); the fields that this project reads.', {
    name: string('Name.'),
    generateName: string('Prefix of a generated name.'),
    namespace: string('Namespace.'),
    uid: string('Unique id.'),
    resourceVersion: string('Version of the stored object.'),
    generation: { type: 'integer', format: 'int64', description: 'Number of changes to spec.' },
    creationTimestamp: string('RFC 3339.'),
    deletionTimestamp: string('RFC 3339; set while the object is being deleted.'),
    labels: map({ type: 'string' }, 'Labels.'),
    annotations: map({ type: 'string' }, 'Annotations.'),
    finalizers: list({ type: 'string' }, 'Finalizers.'),
    ownerReferences: list(
      object(
        'An owner.',
        {
          apiVersion: string('API version of the owner.'),
          kind: string('Kind of the owner.'),
          name: string('Name of the owner.'),
          uid: string('Id of the owner.'),
          controller: { type: 'boolean', description: 'Whether the owner is the managing controller.' },
          blockOwnerDeletion: { type: 'boolean', description: 'Whether the owner waits for this object to be deleted.' },
        },
        ['apiVersion', 'kind', 'name', 'uid'],
      ),
      'Owners.',
    ),
    managedFields: list(
      { type: 'object', 'x-kubernetes-preserve-unknown-fields': true, description: 'Which field manager set which fields.' },
      'Field managers.',
    ),
  }),
}
