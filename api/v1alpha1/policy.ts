import { CONTROLLER_NAME, GATEWAY_GROUP, GROUP } from '../names.ts'
import { atLeastOneOf, exactlyOneOf, integer, keyedList, list, map, object, ref, string, type Definitions, type ValidationRule } from '../schema.ts'

const ROUTES = ['HTTPRoute', 'GRPCRoute']
const GATEWAY_KINDS = ['Gateway', 'HTTPRoute', 'GRPCRoute', 'ListenerSet']
const INFERENCE_GROUP = 'inference.networking.k8s.io'
const quoted = (texts: readonly string[]): string => `[${texts.map((text) => `'${text}'`).join(', ')}]`

const targetKind: ValidationRule = {
  rule: [
    "(self.group == '' && self.kind == 'Service')",
    `(self.group == '${GROUP}' && self.kind == 'ProxyBackend')`,
    `(self.group == '${GATEWAY_GROUP}' && self.kind in ${quoted(GATEWAY_KINDS)})`,
    `(self.group == '${INFERENCE_GROUP}' && self.kind == 'InferencePool')`,
  ].join(' || '),
  message: `may only reference Service, ${GROUP} ProxyBackend, ${GATEWAY_GROUP} [${GATEWAY_KINDS.join(', ')}] or ${INFERENCE_GROUP} InferencePool`,
}
const servicePort: ValidationRule = {
  rule: "self.kind != 'Service' || !has(self.sectionName) || (self.sectionName.matches('^[0-9]{1,5}$') && int(self.sectionName) >= 1 && int(self.sectionName) <= 65535)",
  message: 'sectionName of a Service must be a numeric port from 1 to 65535',
  fieldPath: '.sectionName',
}
const group = string('API group of the target: empty for a Service.', { maxLength: 253 })
const kind = string('Kind of the target: Gateway, ListenerSet, HTTPRoute, GRPCRoute, Service, ProxyBackend or InferencePool.', { minLength: 1, maxLength: 63 })
const sectionName = ref(
  'SectionName',
  'Part of the target: a listener of a Gateway or ListenerSet, a rule of a route, a port (number) of a Service, a target or provider of a ProxyBackend. Not set: the whole target.',
)

/** A rule that requires `predicate` of every target in either list if `condition` holds. */
function everyTarget(condition: string, predicate: string, message: string, fieldPath: string): ValidationRule {
  const all = (field: string): string => `(!has(self.${field}) || self.${field}.all(t, ${predicate}))`
  return { rule: `!(${condition}) || (${all('targetRefs')} && ${all('targetSelectors')})`, message, fieldPath, reason: 'FieldValueForbidden' }
}
const sameKind = (field: string): ValidationRule => ({
  rule: `!has(self.${field}) || self.${field}.all(t, t.kind == self.${field}[0].kind)`,
  message: 'only one Kind of target may be used in one policy',
  fieldPath: `.${field}`,
})

export const policyDefinitions: Definitions = {
  ProxyPolicySpec: object(
    'Policies and what they apply to. A policy has at least one of traffic, frontend, backend.',
    {
      targetRefs: list(ref('PolicyTargetReference'), 'Objects that the policy applies to, by name; in the namespace of the policy, all of one kind.', 1, 16, {
        'x-kubernetes-list-type': 'atomic',
      }),
      targetSelectors: list(
        ref('PolicyTargetSelector'),
        'Objects that the policy applies to, by label; in the namespace of the policy, all of one kind.',
        1,
        16,
        {
          'x-kubernetes-list-type': 'atomic',
        },
      ),
      frontend: ref('Frontend', 'Settings of the connections that clients make. Targets must be Gateways, without sectionName.'),
      traffic: ref('Traffic', 'Policies for requests. Targets: Gateway, ListenerSet, HTTPRoute, GRPCRoute, InferencePool.'),
      backend: ref(
        'BackendFull',
        'Policies for connections to backends. Targets: any; targeting more than a Service or ProxyBackend groups the backends that are reached through the target.',
      ),
    },
    [],
    [
      exactlyOneOf('targetRefs', 'targetSelectors'),
      atLeastOneOf('traffic', 'frontend', 'backend'),
      sameKind('targetRefs'),
      sameKind('targetSelectors'),
      everyTarget('has(self.frontend)', "t.kind == 'Gateway'", 'frontend can only target a Gateway', '.frontend'),
      everyTarget(
        'has(self.frontend)',
        "t.kind != 'Gateway' || !has(t.sectionName)",
        'frontend may only target a Gateway, not a listener (sectionName)',
        '.frontend',
      ),
      everyTarget(
        'has(self.traffic)',
        `t.kind in ${quoted(['Gateway', 'ListenerSet', ...ROUTES, 'InferencePool'])}`,
        'traffic can only target Gateway, ListenerSet, HTTPRoute, GRPCRoute or InferencePool',
        '.traffic',
      ),
      everyTarget(
        "has(self.traffic) && has(self.traffic.phase) && self.traffic.phase == 'PreRouting'",
        "t.kind in ['Gateway', 'ListenerSet']",
        'phase PreRouting can only target a Gateway or ListenerSet',
        '.traffic.phase',
      ),
      everyTarget('has(self.backend) && has(self.backend.ai)', "t.kind != 'Service'", 'backend.ai may not target a Service', '.backend.ai'),
      everyTarget(
        'has(self.backend) && has(self.backend.mcp)',
        "t.kind != 'Service' && !(t.kind == 'ProxyBackend' && has(t.sectionName))",
        'backend.mcp may not target a Service or a part (sectionName) of a ProxyBackend',
        '.backend.mcp',
      ),
      {
        rule: '!(has(self.traffic) && has(self.traffic.jwtAuthentication) && has(self.backend) && has(self.backend.mcp) && has(self.backend.mcp.authentication))',
        message: 'traffic.jwtAuthentication and backend.mcp.authentication may not be used in the same policy',
        fieldPath: '.backend.mcp.authentication',
        reason: 'FieldValueForbidden',
      },
    ],
  ),
  PolicyTargetReference: object(
    'An object, by name.',
    { group, kind, name: string('Name of the target.', { minLength: 1, maxLength: 253 }), sectionName },
    ['group', 'kind', 'name'],
    [targetKind, servicePort],
  ),
  PolicyTargetSelector: object(
    'Objects of one kind, by label.',
    {
      group,
      kind,
      matchLabels: map(string('Label value.', { maxLength: 63 }), 'Labels that a target must all have; empty selects every object of the kind.'),
      sectionName,
    },
    ['group', 'kind', 'matchLabels'],
    [targetKind, servicePort],
  ),
  ProxyPolicyStatus: object(
    'Status of the policy for each Gateway.',
    {
      conditions: ref('Conditions'),
      ancestors: list(
        ref('PolicyAncestorStatus'),
        'One entry for each Gateway that the policy takes effect on. One named StatusSummary lists the targets that the policy could not be attached to.',
        undefined,
        16,
        {
          'x-kubernetes-list-type': 'atomic',
        },
      ),
      plugins: keyedList(
        'name',
        ref('PluginStatus'),
        'The source of each plugin that data planes receive. Data planes keep an older version while a new one cannot be loaded.',
        undefined,
        16,
      ),
    },
    ['ancestors'],
  ),
  PluginStatus: object(
    'The source of a plugin.',
    {
      name: string('Name of the plugin.', { minLength: 1, maxLength: 63 }),
      digest: string('Digest of the source: `sha256:` and 64 hexadecimal digits.', { minLength: 71, maxLength: 71 }),
    },
    ['name', 'digest'],
  ),
  PolicyAncestorStatus: object(
    'Status of the policy on one Gateway.',
    {
      ancestorRef: ref('ParentReference'),
      controllerName: string(
        `Controller that wrote the entry, as DOMAIN/PATH; ours is \`${CONTROLLER_NAME}\`. Controllers remove entries that they no longer need.`,
        {
          minLength: 1,
          maxLength: 253,
          pattern: "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+$",
        },
      ),
      conditions: ref('Conditions', 'Accepted: the policy is valid (reason PartiallyValid: in part). Attached: it is in force on its targets.'),
    },
    ['ancestorRef', 'controllerName'],
  ),
  ParentReference: object(
    'The object of a status entry.',
    {
      group: string('API group.', { maxLength: 253, default: GATEWAY_GROUP }),
      kind: string('Kind.', { minLength: 1, maxLength: 63, default: 'Gateway' }),
      namespace: string('Namespace; default: that of the policy.', { minLength: 1, maxLength: 63 }),
      name: string('Name.', { minLength: 1, maxLength: 253 }),
      sectionName: ref('SectionName', 'Part of the object.'),
      port: integer('Port of the object.', 1, 65535),
    },
    ['name'],
  ),
}
