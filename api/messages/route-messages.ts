import type { MessageTable } from './types.ts'

/** Conditions of routes, and references to backends: PX11xx and PX12xx. */
export const routeMessages = {
  PX1101: {
    title: 'listener of the parentRef not found',
    cause: 'sectionName of a parentRef names a listener that the Gateway or ListenerSet does not have. The route is not attached there.',
    fix: 'Use the name of a listener, or remove sectionName to attach to all listeners.',
  },
  PX1102: {
    title: 'port of the parentRef not found',
    cause: 'port of a parentRef is not the port of any listener.',
    fix: 'Use the port of a listener, or remove port.',
  },
  PX1103: {
    title: 'no listener of the parentRef is accepted',
    cause: 'All listeners that the parentRef selects have a conflict or a reserved port.',
    fix: 'Correct the listeners first; the status of the Gateway names the problem of each.',
  },
  PX1104: {
    title: 'route kind is not allowed by the listener',
    cause: 'The protocol or allowedRoutes.kinds of the listener excludes the kind of the route.',
    fix: 'Attach the route to another listener, or extend allowedRoutes.kinds.',
  },
  PX1105: {
    title: 'namespace of the route is not allowed by the listener',
    cause: 'allowedRoutes.namespaces of the listener excludes the namespace of the route. The default is the namespace of the Gateway only.',
    fix: 'Set allowedRoutes.namespaces to `from: All` or a selector, or move the route.',
  },
  PX1106: {
    title: 'hostnames of route and listener do not overlap',
    cause: 'No hostname of the route matches the hostname of a listener.',
    fix: 'Correct the hostnames. A wildcard such as *.example.com matches one or more labels, and not example.com itself.',
  },
  PX1108: {
    title: 'match of a rule is not supported',
    cause: 'A match type is unknown, or a regular expression is not valid RE2 syntax. The rule responds 500 where the rest of it matches; other rules work.',
    fix: 'Correct the match. RE2 has no lookaround and no backreferences.',
  },
  PX1109: {
    title: 'filter is not supported',
    cause: 'The rule or backendRef has a filter type that is not supported there. Requests that match the rule get 500.',
    fix: 'Use one of the filters that the message lists, or a ProxyPolicy.',
  },
  PX1110: {
    title: 'filters cannot be combined',
    cause: 'A rule has a filter twice, or RequestRedirect together with URLRewrite. Requests that match the rule get 500.',
    fix: 'Keep one of the filters.',
  },
  PX1111: {
    title: 'filter has no settings',
    cause: 'The type of a filter is set, and the field with its settings is missing.',
    fix: 'Set the field that belongs to the type, for example requestHeaderModifier for RequestHeaderModifier.',
  },
  PX1112: {
    title: 'ReplacePrefixMatch needs prefix matches',
    cause: 'A rule replaces the matched prefix, and one of its matches is not of type PathPrefix.',
    fix: 'Use PathPrefix matches, or ReplaceFullPath.',
  },
  PX1113: {
    title: 'duration of a route is not valid',
    cause: 'A timeout or backoff of a rule cannot be read as a duration.',
    fix: 'Write a number and a unit, such as 500ms, 10s or 1m30s.',
  },
  PX1114: {
    title: 'route without a Gateway',
    cause: 'A route has no parentRefs, or no manifest of the directory defines the Gateway that they name. No Gateway serves the route.',
    fix: 'Correct the name and namespace in parentRefs, or add the Gateway.',
  },
  PX1115: {
    title: 'rule without requests',
    cause:
      'A match of another rule on the same listener and hostname has precedence and accepts all requests of this match. Exact paths precede prefixes, longer prefixes shorter ones, and prefixes regular expressions; of equal matches, that of the older route counts, then the first by namespace and name, then the first rule. Or another listener of the port has a narrower hostname that covers all hosts of the rule, and the route is not attached to it. The route stays accepted.',
    fix: 'Remove one of the matches, make the other one narrower, or add a header, method or query parameter that tells the requests apart. Attach the route to the listener with the narrower hostname. proxyctl explain names the other rule if it is in another namespace.',
  },
  PX1116: {
    title: 'field of a route is not supported',
    cause: 'A route sets useDefaultGateways, an experimental field of Gateway API. The field has no effect; everything else of the route is in force.',
    fix: 'Remove the field. Name the Gateways in parentRefs.',
  },
  PX1117: {
    title: 'session persistence cannot be honoured',
    cause:
      'sessionPersistence of a rule has an invalid name, path, duration or type: the field has no effect, and everything else of the rule is in force. Or a Service of the rule has sessionAffinity, which Gateway API does not permit beside it: the rule is invalid, and its requests get 500.',
    fix: 'Correct the field that the message names, or remove sessionAffinity of the Service.',
  },
  PX1201: {
    title: 'backend of an unsupported kind',
    cause: 'A backendRef names a kind other than Service, ProxyBackend and, if enabled, InferencePool. Its share of the requests gets 500.',
    fix: 'Refer to a Service, or to a ProxyBackend that describes the destination.',
  },
  PX1202: {
    title: 'backend of another namespace is not permitted',
    cause:
      'A backendRef names another namespace, or a selector of MCP targets matches Services there, and no ReferenceGrant there permits it. Requests of a route to such a backend get 500, calls of a policy to it fail, and the Services are not targets.',
    fix: 'Create a ReferenceGrant in the namespace of the backend, from the kind and namespace of the referring object to the kind of the backend.',
  },
  PX1203: {
    title: 'InferencePool not found',
    cause: 'The InferencePool of a backendRef does not exist.',
    fix: 'Create it, or correct the name.',
  },
  PX1204: {
    title: 'ProxyBackend not found',
    cause: 'The ProxyBackend of a backendRef does not exist. Its share of the requests gets 500.',
    fix: 'Create it, or correct name and namespace.',
  },
  PX1205: {
    title: 'name of a Service has a dot',
    cause: 'A backendRef names a Service by its DNS name.',
    fix: 'Write the name of the Service in name and its namespace in namespace.',
  },
  PX1206: {
    title: 'backendRef has no port',
    cause: 'A reference to a Service needs the port of the Service.',
    fix: 'Set port to one of the ports of the Service.',
  },
  PX1207: {
    title: 'Service not found',
    cause:
      'The Service of a backendRef does not exist, or its namespace is excluded by the discovery selectors of the operator. Its share of the requests gets 500.',
    fix: 'Create the Service, or correct name and namespace.',
  },
  PX1208: {
    title: 'Service does not have the port',
    cause:
      'A backendRef names a port that the Service does not expose. The port of the Service counts, not that of the pods. Its share of the requests gets 500.',
    fix: 'Use one of the ports that the message lists.',
  },
  PX1209: {
    title: 'endpoint picker of an InferencePool is not usable',
    cause: 'endpointPickerRef does not name a port of a Service of the same namespace. Requests to the pool get 500 or, with FailOpen, any endpoint.',
    fix: 'Name a Service that is not of type ExternalName, and one of its TCP ports.',
  },
} as const satisfies MessageTable

export type RouteCode = keyof typeof routeMessages
