import { parseDuration } from '#api/duration.ts'
import type { ListenerSpec, ParentRef, PathModifier, RouteFilter } from './gateway-api.ts'
import type { KubeObject } from './objects.ts'
import type { Issue, Path } from './validate.ts'

/**
 * Rules of the Gateway API's CRDs that compare fields (there in CEL). Rules whose breach has a status of its own, such
 * as repeated filters or equal listeners, are left to translation: a status is more helpful than a rejection.
 */
export function checkRules(object: KubeObject): Issue[] {
  switch (object.kind) {
    case 'Gateway':
    case 'ListenerSet':
      return object.spec.listeners.flatMap((listener, index) => checkListener(listener, ['spec', 'listeners', index]))
    case 'HTTPRoute':
      return [
        ...checkParents(object.spec.parentRefs),
        ...checkRuleNames(object.spec.rules),
        ...(object.spec.rules ?? []).flatMap((rule, index) => checkHttpRule(rule, ['spec', 'rules', index])),
      ]
    case 'GRPCRoute':
      return [
        ...checkParents(object.spec.parentRefs),
        ...checkRuleNames(object.spec.rules),
        ...(object.spec.rules ?? []).flatMap((rule, index) => [
          ...checkFilters(rule, ['spec', 'rules', index]),
          ...(rule.matches ?? []).flatMap(({ method }, at) =>
            method && !method.service && !method.method
              ? [{ path: ['spec', 'rules', index, 'matches', at, 'method'], message: 'one or both of service and method must be set' }]
              : [],
          ),
        ]),
      ]
    case 'TLSRoute':
    case 'TCPRoute':
      return checkParents(object.spec.parentRefs)
    case 'BackendTLSPolicy': {
      const { caCertificateRefs = [], wellKnownCACertificates } = object.spec.validation
      const isOne = caCertificateRefs.length > 0 !== (wellKnownCACertificates !== undefined)
      return isOne ? [] : [{ path: ['spec', 'validation'], message: 'exactly one of caCertificateRefs and wellKnownCACertificates must be set' }]
    }
    case 'Secret':
      return Object.entries(object.data ?? {}).flatMap(([entry, value]) =>
        /^[A-Za-z0-9+/\s]*={0,2}\s*$/.test(value) ? [] : [{ path: ['data', entry], message: 'is not base64; write plain text under stringData' }],
      )
    default:
      return []
  }
}

function checkListener({ protocol, tls, hostname }: ListenerSpec, path: Path): Issue[] {
  const issues: Issue[] = []
  if (tls && ['HTTP', 'TCP', 'UDP'].includes(protocol))
    issues.push({ path: [...path, 'tls'], message: `tls must not be set for protocol ${protocol}; use HTTPS or TLS` })
  if (tls?.mode === 'Passthrough' && protocol === 'HTTPS')
    issues.push({ path: [...path, 'tls', 'mode'], message: 'mode must be Terminate for protocol HTTPS; use protocol TLS' })
  if (!tls && protocol === 'TLS') issues.push({ path, message: 'tls is required for protocol TLS; set tls.mode' })
  if (hostname !== undefined && (protocol === 'TCP' || protocol === 'UDP'))
    issues.push({ path: [...path, 'hostname'], message: `hostname must not be set for protocol ${protocol}` })
  return issues
}

function checkParents(refs: readonly ParentRef[] | undefined): Issue[] {
  const seen = new Set<string>()
  return (refs ?? []).flatMap((ref, index) => {
    const id = [ref.group, ref.kind, ref.namespace, ref.name, ref.sectionName, ref.port].join(' ')
    const isRepeated = seen.has(id)
    seen.add(id)
    return isRepeated ? [{ path: ['spec', 'parentRefs', index], message: 'is the same as an earlier entry; set sectionName or port' }] : []
  })
}

function checkRuleNames(rules: readonly { readonly name?: string }[] | undefined): Issue[] {
  const seen = new Set<string>()
  return (rules ?? []).flatMap(({ name }, index) => {
    if (name === undefined) return []
    const isRepeated = seen.has(name)
    seen.add(name)
    return isRepeated ? [{ path: ['spec', 'rules', index, 'name'], message: `name ${name} is already used by an earlier rule` }] : []
  })
}

type HttpRule = NonNullable<Extract<KubeObject, { kind: 'HTTPRoute' }>['spec']['rules']>[number]

function checkHttpRule(rule: HttpRule, path: Path): Issue[] {
  const redirect = (rule.filters ?? []).findIndex((filter) => filter.type === 'RequestRedirect')
  return [
    ...checkFilters(rule, path),
    ...(rule.matches ?? []).flatMap((match, index) => checkPath(match.path, [...path, 'matches', index, 'path', 'value'])),
    ...(redirect >= 0 && rule.backendRefs?.length
      ? [{ path: [...path, 'filters', redirect], message: 'RequestRedirect cannot be used together with backendRefs; remove one of them' }]
      : []),
    ...checkTimeouts(rule.timeouts, [...path, 'timeouts', 'backendRequest']),
  ]
}

/** The timeout of one attempt cannot be longer than that of the request; 0s is no limit. */
function checkTimeouts({ request, backendRequest }: NonNullable<HttpRule['timeouts']> = {}, path: Path): Issue[] {
  const limitMs = parseDuration(request ?? '')
  const attemptMs = parseDuration(backendRequest ?? '')
  if (!limitMs || attemptMs === undefined || attemptMs <= limitMs) return []
  return [{ path, message: `${backendRequest} is longer than timeouts.request ${request}` }]
}

function checkPath(match: { readonly type: string; readonly value: string } | undefined, path: Path): Issue[] {
  if (!match || match.type === 'RegularExpression') return []
  const { value } = match
  if (!value.startsWith('/')) return [{ path, message: `${value} must start with /` }]
  const bad = ['//', '/./', '/../', '%2f', '%2F', '#'].find((part) => value.includes(part)) ?? ['/..', '/.'].find((part) => value.endsWith(part))
  if (bad !== undefined) return [{ path, message: `${value} must not contain ${bad}` }]
  return /^(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|%[0-9a-fA-F]{2})+$/.test(value)
    ? []
    : [{ path, message: `${value} has characters that a path cannot have; percent-encode them` }]
}

/** Each filter type and the field that holds its settings. */
const settingsOf: Readonly<Record<string, string>> = {
  RequestHeaderModifier: 'requestHeaderModifier',
  ResponseHeaderModifier: 'responseHeaderModifier',
  RequestMirror: 'requestMirror',
  RequestRedirect: 'requestRedirect',
  URLRewrite: 'urlRewrite',
  ExtensionRef: 'extensionRef',
  CORS: 'cors',
  ExternalAuth: 'externalAuth',
}

interface FilteredRule {
  readonly filters?: readonly RouteFilter[]
  readonly backendRefs?: readonly { readonly filters?: readonly RouteFilter[] }[]
}

function checkFilters({ filters = [], backendRefs = [] }: FilteredRule, path: Path): Issue[] {
  return [
    ...filters.flatMap((filter, index) => checkFilter(filter, [...path, 'filters', index])),
    ...backendRefs.flatMap((ref, at) => (ref.filters ?? []).flatMap((filter, index) => checkFilter(filter, [...path, 'backendRefs', at, 'filters', index]))),
  ]
}

function checkFilter(filter: RouteFilter, path: Path): Issue[] {
  const issues: Issue[] = []
  for (const [type, field] of Object.entries(settingsOf)) {
    const isSet = Object.hasOwn(filter, field)
    if (isSet && filter.type !== type)
      issues.push({ path: [...path, field], message: `belongs to filters of type ${type}, this one is of type ${filter.type}` })
    if (!isSet && filter.type === type) issues.push({ path, message: `${field} is required for type ${type}` })
  }
  const { requestMirror: mirror, requestRedirect, urlRewrite } = filter
  if (mirror?.percent !== undefined && mirror.fraction)
    issues.push({ path: [...path, 'requestMirror'], message: 'only one of percent and fraction may be set' })
  if (mirror?.fraction && mirror.fraction.numerator > mirror.fraction.denominator)
    issues.push({ path: [...path, 'requestMirror', 'fraction'], message: 'numerator must not be greater than denominator' })
  issues.push(
    ...checkModifier(requestRedirect?.path, [...path, 'requestRedirect', 'path']),
    ...checkModifier(urlRewrite?.path, [...path, 'urlRewrite', 'path']),
  )
  return issues
}

function checkModifier(modifier: PathModifier | undefined, path: Path): Issue[] {
  if (!modifier) return []
  const [own, other] =
    modifier.type === 'ReplaceFullPath' ? (['replaceFullPath', 'replacePrefixMatch'] as const) : (['replacePrefixMatch', 'replaceFullPath'] as const)
  if (modifier[own] === undefined) return [{ path, message: `${own} is required for type ${modifier.type}` }]
  return modifier[other] === undefined ? [] : [{ path: [...path, other], message: `must not be set for type ${modifier.type}` }]
}
