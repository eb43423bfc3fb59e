// Names that several programs, or a program and its users, must agree on.

/** API group and version of the kinds. */
export const GROUP = 'proxy.dev'
export const VERSION = 'v1alpha1'
/** `controllerName` of GatewayClasses and in statuses. */
export const CONTROLLER_NAME = 'proxy.dev/proxy'
/** Server-side apply field manager. */
export const FIELD_MANAGER = 'proxy.dev/proxy'
/** GatewayClass that the operator creates. */
export const GATEWAY_CLASS = 'proxy'
/** Default namespace of the operator. */
export const SYSTEM_NAMESPACE = 'proxy-system'
/** Prefix of the names of metrics. */
export const METRIC_PREFIX = 'proxy_'

/** API group of Gateway API. */
export const GATEWAY_GROUP = 'gateway.networking.k8s.io'

/** Replaces credentials in logs, dumps and results of expressions. */
export const REDACTED = '<redacted>'

/** Ports of the data plane's management endpoints (traffic.md §12). */
export const ADMIN_PORT = 15000
export const STATS_PORT = 15020
export const READINESS_PORT = 15021
export const LIVENESS_PORT = 15022
/** Port on which a replica takes messages of others (mcp.md §13.2). */
export const PEER_PORT = 15023
/** Ports that listeners cannot use. */
export const RESERVED_PORTS: readonly number[] = [ADMIN_PORT, STATS_PORT, READINESS_PORT, LIVENESS_PORT, PEER_PORT]

/** Port of the operator's config stream. */
export const XDS_PORT = 9978
/** Audience of the tokens by which data planes authenticate to the config stream. */
export const XDS_AUDIENCE = 'proxy'
/** Type URLs of the config stream: per-Gateway resources, and the services they send traffic to. */
export const RESOURCE_TYPE = 'type.googleapis.com/proxy.dev.resource.Resource'
export const ADDRESS_TYPE = 'type.googleapis.com/proxy.dev.resource.Address'

/** Directory mode: addresses of a Service without EndpointSlices, comma separated `ip` or `ip:port`. */
export const ENDPOINTS_ANNOTATION = `${GROUP}/endpoints`

/** Values of `appProtocol` of Service ports that serve MCP. */
export const APP_PROTOCOL_MCP = `${GROUP}/mcp`
export const APP_PROTOCOL_MCP_SSE = `${GROUP}/mcp-sse`
/** Label of the objects of MCP servers that the operator runs: the ProxyBackend. */
export const MCP_BACKEND_LABEL = `${GROUP}/mcp-backend`
/** Value of `appProtocol` of Service ports of A2A agents. */
export const APP_PROTOCOL_A2A = `${GROUP}/a2a`
/** Name of the policy ancestor that summarizes targets without attachment (operator.md §4.8). */
export const STATUS_SUMMARY = 'StatusSummary'
/** Maximum number of ancestors in the status of a policy. */
export const MAX_ANCESTORS = 16

/** Condition of a route with matches that get no requests. The kind is that of Gateway API, whose types of conditions have no domain. */
export const SHADOWED = `${GROUP}/Shadowed`

/** Condition types that the operator writes, those of Gateway API first. */
export type ConditionType =
  | 'Accepted'
  | 'Programmed'
  | 'ResolvedRefs'
  | 'Conflicted'
  | 'PartiallyInvalid'
  | 'InsecureFrontendValidationMode'
  | 'Attached'
  | 'SessionsShared'
  | 'ToolsApproved'
  | 'ServersReady'
  | 'StatusSummarized'
  | typeof SHADOWED

/** Condition reasons that the operator writes: those of Gateway API where they exist (operator.md §4). */
export type ConditionReason =
  // GatewayClass, Gateway
  | 'Accepted'
  | 'Programmed'
  | 'ResolvedRefs'
  | 'Invalid'
  | 'InvalidParameters'
  | 'ListenersNotValid'
  | 'UnsupportedAddress'
  | 'AddressNotUsable'
  | 'DeploymentFailed'
  | 'InvalidClientCertificateRef'
  | 'ConfigurationChanged'
  // Listener, ListenerSet
  | 'NoConflicts'
  | 'HostnameConflict'
  | 'ProtocolConflict'
  | 'UnsupportedProtocol'
  | 'PortUnavailable'
  | 'InvalidRouteKinds'
  | 'InvalidCertificateRef'
  | 'InvalidCACertificateRef'
  | 'InvalidCACertificateKind'
  | 'NoValidCACertificate'
  | 'NotAllowed'
  | 'ParentNotAccepted'
  // Routes
  | 'NoMatchingParent'
  | 'NotAllowedByListeners'
  | 'NoMatchingListenerHostname'
  | 'UnsupportedValue'
  | 'IncompatibleFilters'
  | 'RefNotPermitted'
  | 'BackendNotFound'
  | 'InvalidKind'
  | 'LowerPrecedence'
  // InferencePools
  | 'InvalidExtensionRef'
  // ProxyBackends
  | 'OlderTransport'
  | 'ToolsHeld'
  | 'Ready'
  // Policies
  | 'Conflicted'
  | 'TargetNotFound'
  | 'Valid'
  | 'PartiallyValid'
  | 'Attached'
  | 'Merged'
  | 'Overridden'
  | 'Pending'
  | 'StatusSummary'
  | 'TranslationError'

/** Key of the Secret with the token of the admin endpoint. */
export const ADMIN_TOKEN_ENTRY = 'token'
/** The Secret with the token of the admin endpoints of a Gateway's data planes. `gateway` is its name, shortened by `safeName`. */
export const adminTokenSecret = (gateway: string, sha256Hex: (text: string) => string): string => safeName(`${gateway}-admin-token`, sha256Hex)

/** Shortens a name to the length of a label: 50 characters, `-` and 12 hex digits of its SHA-256. */
export function safeName(name: string, sha256Hex: (text: string) => string): string {
  if (name.length <= 63) return name
  const head = name.slice(0, 50)
  return `${head.endsWith('-') ? head.slice(0, -1) : head}-${sha256Hex(name).slice(0, 12)}`
}
