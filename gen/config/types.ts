/** Written by `make generate`. Do not edit. */

/**
 * Whole milliseconds; 0 turns the limit off.
 * 
 */
export type Milliseconds = number

export interface Root {

}
/**
 */
export interface Frontend {

}
/**
 */
export interface Traffic {

}
/**
 */
export interface BackendFull {

}
/**
 */
export interface AIBackend {

}
/**
 */
export interface MCPBackend {

}
/**
 */
export interface CloudBackend {

}
/**
 * One port that the data plane listens on. What is spoken there follows from its listeners: a port may mix HTTP, HTTPS and TLS; TCP stands alone.
 * 
 */
export interface Bind {
/**
 * Unique among its kind. Shape: `<port>/<namespace>/<gateway>`.
 */
key: string
/**
 * TCP port.
 */
port: number
/**
 * Addresses to listen on; all when absent.
 * 
 * Items: IP address.
 */
addresses?: string[]
}
/**
 * The Gateway that an object belongs to.
 * 
 */
export interface GatewayRef {
/**
 * Namespace.
 */
namespace: string
/**
 * Name.
 */
name: string
}
/**
 * One listener of a Gateway or ListenerSet.
 * 
 */
export interface Listener {
/**
 * Unique among its kind. Shape: `<namespace>/<gateway or listener set>.<section>`.
 */
key: string
/**
 * Key of the bind it listens on.
 */
bind: string
gateway: GatewayRef
listenerSet?: GatewayRef
/**
 * Section name.
 */
name: string
/**
 * Exact or `*.` hostname, lower case; absent matches any.
 */
hostname?: string
/**
 * Protocol as Gateway API names it.
 */
protocol: ("HTTP" | "HTTPS" | "TLS" | "TCP")
tls?: ListenerTls
}
/**
 * TLS of a listener.
 * 
 */
export interface ListenerTls {
/**
 * Terminate decrypts here; Passthrough relays bytes by SNI.
 */
mode: ("Terminate" | "Passthrough")
/**
 * Certificates to offer. Terminate with none, or with keys that do not resolve: handshakes fail, never plaintext.
 * 
 * Items: Key of a Secret message of type tls.
 */
certificates?: string[]
clientValidation?: ClientValidation
/**
 * TLS options of the listener, as written.
 */
options?: {
[k: string]: string
}
}
/**
 * Client certificate validation (Gateway `spec.tls.frontend`).
 * 
 */
export interface ClientValidation {
/**
 * AllowValidOnly requires a certificate that verifies. AllowInsecureFallback asks, accepts a missing or invalid one, and exposes no identity then.
 */
mode: ("AllowValidOnly" | "AllowInsecureFallback")
/**
 * Trust anchors, concatenated. None that resolves: every handshake fails.
 * 
 * Items: Key of a Secret message of type ca.
 */
caCertificates: string[]
}
/**
 * Key material. Never logged; `/config_dump` shows `<redacted>`.
 * 
 */
export interface Secret {
/**
 * Unique among its kind. Shape: `<namespace>/<name>`.
 */
key: string
/**
 * tls: certificate and privateKey. ca: certificate. opaque: data.
 */
type: ("tls" | "ca" | "opaque")
/**
 * PEM chain, leaf first; for ca, the trust anchors.
 */
certificate?: string
/**
 * PEM private key.
 */
privateKey?: string
/**
 * Entries of an opaque secret, decoded from base64 to UTF-8.
 */
data?: {
[k: string]: string
}
}
/**
 * The route object and rule that a message was made from; what logs and metrics show.
 * 
 */
export interface RouteRef {
/**
 * Kind of the route.
 */
kind: ("HTTPRoute" | "GRPCRoute" | "TCPRoute" | "TLSRoute")
/**
 * Namespace.
 */
namespace: string
/**
 * Name.
 */
name: string
/**
 * Name of the rule, where it has one.
 */
rule?: string
/**
 * Position of the rule in the route, from 0.
 */
ruleIndex: number
}
/**
 * One rule of an HTTPRoute or GRPCRoute (whose methods have become paths), on all the listeners that accepted it.
 * 
 */
export interface Route {
/**
 * Unique among its kind. Shape: `<namespace>/<name>.<rule, 2 digits>[.grpc]`.
 */
key: string
/**
 * Listeners that accepted the route.
 * 
 * Items: Key of a listener.
 */
listeners: string[]
route: RouteRef
/**
 * RFC 3339; ties between equal matches go to the oldest route, then `namespace/name`, then the rule.
 */
creationTimestamp?: string
/**
 * Hostnames of the route, as written; the data plane intersects them with each listener. Absent matches every host of the listener.
 * 
 * Items: Exact or `*.` hostname, lower case.
 */
hostnames?: string[]
/**
 * Any of these. Absent: every path.
 */
matches?: RouteMatch[]
filters?: RouteFilters
timeouts?: RouteTimeouts
retry?: RouteRetry
/**
 * Where requests go. Absent, empty or all of weight 0: 500, unless a filter answers.
 */
backends?: WeightedBackend[]
}
/**
 * All given conditions must hold (traffic.md §7).
 * 
 */
export interface RouteMatch {
path?: PathMatch
/**
 * Header conditions; names are case-insensitive; `:method`, `:path`, `:authority`, `:scheme` are usable.
 */
headers?: ValueMatch[]
/**
 * Query conditions; form-decoded; the last value of a repeated parameter counts.
 */
queryParams?: ValueMatch[]
/**
 * HTTP method, case-sensitive.
 */
method?: string
}
/**
 * Condition on the undecoded path without query.
 * 
 */
export interface PathMatch {
/**
 * PathPrefix is segment-wise; RegularExpression matches the full path, RE2 syntax.
 */
type: ("Exact" | "PathPrefix" | "RegularExpression")
/**
 * Value.
 */
value: string
}
/**
 * Condition on a header or query parameter.
 * 
 */
export interface ValueMatch {
/**
 * Name; lower case for headers.
 */
name: string
/**
 * RegularExpression matches the full value, RE2 syntax.
 */
type: ("Exact" | "RegularExpression")
/**
 * Value.
 */
value: string
}
/**
 * Filters written in the rule itself; each kind replaces the same kind coming from a ProxyPolicy.
 * 
 */
export interface RouteFilters {
/**
 * RequestHeaderModifier filters, in order.
 */
requestHeaders?: HeaderModifier[]
/**
 * ResponseHeaderModifier filters, in order.
 */
responseHeaders?: HeaderModifier[]
redirect?: RequestRedirect
urlRewrite?: UrlRewrite
/**
 * RequestMirror filters, in order.
 */
mirrors?: RequestMirror[]
cors?: Cors
/**
 * Set when the rule cannot be honoured: every matching request gets 500 with this text in the log.
 */
invalid?: string
}
/**
 * Changes to a head, in the order add, set, remove.
 * 
 */
export interface HeaderModifier {
/**
 * Append a field line.
 */
add?: HeaderValue[]
/**
 * Replace every field line of that name. `host` on a request rewrites the authority.
 */
set?: HeaderValue[]
/**
 * Remove every field line of that name.
 * 
 * Items: Header name.
 */
remove?: string[]
}
/**
 * A header to write.
 * 
 */
export interface HeaderValue {
/**
 * Header name.
 */
name: string
/**
 * Value; may be empty.
 */
value: string
}
/**
 * Answers with a redirect instead of forwarding.
 * 
 */
export interface RequestRedirect {
/**
 * Scheme of Location; default: that of the request.
 */
scheme?: ("http" | "https")
/**
 * Host of Location; default: that of the request.
 */
hostname?: string
path?: PathModifier
/**
 * Port of Location; dropped when it is the default of the scheme.
 */
port?: number
/**
 * Status.
 */
statusCode?: (301 | 302 | 303 | 307 | 308)
}
/**
 * How a path is rewritten.
 * 
 */
export interface PathModifier {
/**
 * ReplacePrefixMatch needs a PathPrefix match and is segment-aware.
 */
type: ("ReplaceFullPath" | "ReplacePrefixMatch")
/**
 * Replacement.
 */
value: string
}
/**
 * Rewrites what the upstream sees.
 * 
 */
export interface UrlRewrite {
/**
 * Replaces the authority and turns automatic host rewriting off.
 */
hostname?: string
path?: PathModifier
}
/**
 * Copies the request head to another backend; its answer is discarded (traffic.md §7).
 * 
 */
export interface RequestMirror {
backend: BackendRef
/**
 * Share of requests: numerator / denominator.
 */
numerator?: number
/**
 * See numerator.
 */
denominator?: number
}
/**
 * A destination. Exactly one of service, backend, address, invalid.
 * 
 */
export interface BackendRef {
/**
 * Key of a Service message.
 */
service?: string
/**
 * Port of the Service.
 */
port?: number
/**
 * Key of a Backend message.
 */
backend?: string
/**
 * `host:port`, for `-f` files and call-outs without a resource.
 */
address?: string
/**
 * The reference does not resolve; its share of requests gets this error.
 */
invalid?: ("BACKEND_NOT_FOUND" | "SERVICE_NOT_FOUND" | "NO_VALID_BACKENDS")
}
/**
 * Gateway API HTTPCORSFilter (traffic.md §8.1).
 * 
 */
export interface Cors {
/**
 * Origins that may read answers.
 * 
 * Items: `*` or `scheme://host[:port]`; the host may start with `*.` or be `*`.
 */
allowOrigins?: string[]
/**
 * Sends Access-Control-Allow-Credentials: true.
 */
allowCredentials?: boolean
/**
 * Methods named in preflight answers.
 * 
 * Items: Method or `*`.
 */
allowMethods?: string[]
/**
 * Request headers named in preflight answers.
 * 
 * Items: Header or `*`.
 */
allowHeaders?: string[]
/**
 * Response headers that scripts may read.
 * 
 * Items: Header or `*`.
 */
exposeHeaders?: string[]
/**
 * Seconds that a preflight answer may be cached.
 */
maxAge?: number
}
/**
 * Gateway API HTTPRouteTimeouts.
 * 
 */
export interface RouteTimeouts {
requestMs?: Milliseconds
backendRequestMs?: Milliseconds
}
/**
 * Gateway API HTTPRouteRetry.
 * 
 */
export interface RouteRetry {
/**
 * Statuses that are retried, besides connection failures and attempt timeouts.
 * 
 * Items: Status.
 */
codes?: number[]
/**
 * Extra tries; 0 turns retrying off.
 */
attempts?: number
backoffMs?: Milliseconds
}
/**
 * One of the destinations of a rule.
 * 
 */
export interface WeightedBackend {
ref: BackendRef
/**
 * Share among the rule’s backends; 0 is never chosen.
 */
weight?: number
/**
 * Filters of the backendRef.
 */
requestHeaders?: HeaderModifier[]
/**
 * Filters of the backendRef.
 */
responseHeaders?: HeaderModifier[]
redirect?: RequestRedirect
/**
 * Filters of the backendRef.
 */
mirrors?: RequestMirror[]
}
/**
 * A TCPRoute, or one rule of a TLSRoute.
 * 
 */
export interface TcpRoute {
/**
 * Unique among its kind. Shape: `<namespace>/<name>.<rule, 2 digits>.<tcp or tls>`.
 */
key: string
/**
 * Listeners that accepted the route.
 * 
 * Items: Key of a listener.
 */
listeners: string[]
route: RouteRef
/**
 * RFC 3339; where several routes match, the oldest wins, then `namespace/name`.
 */
creationTimestamp?: string
/**
 * TLSRoute only. Absent matches every name of the listener.
 * 
 * Items: SNI: exact or `*.` hostname, lower case.
 */
hostnames?: string[]
/**
 * Destinations. None usable: the connection is closed.
 */
backends?: WeightedBackend[]
}
/**
 * A Kubernetes Service with its endpoints.
 * 
 */
export interface Service {
/**
 * Unique among its kind. Shape: `<namespace>/<name>`.
 */
key: string
/**
 * `<name>.<namespace>.svc.<cluster domain>`; SNI default, and Host under hostRewrite Auto.
 */
hostname?: string
/**
 * Ports.
 */
ports: ServicePort[]
/**
 * Preferred locality of endpoints.
 */
trafficDistribution?: ("PreferSameZone" | "PreferSameNode" | "PreferClose")
/**
 * Local uses endpoints of the data plane’s own node only.
 */
internalTrafficPolicy?: ("Cluster" | "Local")
}
/**
 * One port of a Service.
 * 
 */
export interface ServicePort {
/**
 * Service port.
 */
port: number
/**
 * Port name.
 */
name?: string
/**
 * What the endpoints speak, from appProtocol; decides the HTTP version where no policy does.
 */
appProtocol?: ("HTTP11" | "HTTP2" | "GRPC" | "WS" | "TCP" | "TLS")
/**
 * Ready endpoints. Empty: 503.
 */
endpoints: Endpoint[]
}
/**
 * One address that serves a port.
 * 
 */
export interface Endpoint {
/**
 * IP address, or a DNS name (ExternalName).
 */
address: string
/**
 * Target port.
 */
port: number
/**
 * Topology zone.
 */
zone?: string
/**
 * Node name.
 */
node?: string
/**
 * Terminating but still serving: used only when nothing else is left.
 */
draining?: boolean
}
/**
 * A ProxyBackend.
 * 
 */
export interface Backend {
/**
 * Unique among its kind. Shape: `<namespace>/<name>`.
 */
key: string
/**
 * One fixed host.
 */
static?: {
/**
 * IP address or DNS name.
 */
host: string
/**
 * Port.
 */
port: number
}
/**
 * The destination is the request’s Host (SNI for TLS). Ports default to 80, or 443 over TLS.
 */
dynamicForwardProxy?: {

}
ai?: AIBackend
mcp?: MCPBackend
cloudBackend?: CloudBackend
policies?: BackendFull
}
/**
 * Backend TLS as the operator resolved it, from a BackendTLSPolicy or a ProxyPolicy’s `backend.tls`.
 * 
 */
export interface BackendTlsValidation {
/**
 * SNI and, unless subjectAltNames is given, the name that the certificate must carry.
 */
sni?: string
/**
 * Replaces the check of sni.
 * 
 * Items: A name that the certificate must carry; any one suffices.
 */
subjectAltNames?: {
/**
 * Kind of name.
 */
type: ("Hostname" | "URI")
/**
 * Value.
 */
value: string
}[]
/**
 * Trust anchors; absent: system CAs. Listed but none resolves: connections fail.
 * 
 * Items: Key of a Secret message of type ca.
 */
caCertificates?: string[]
/**
 * Key of a Secret message of type tls, presented to the upstream.
 */
clientCertificate?: string
/**
 * All: no verification. Hostname: verify the chain only.
 */
insecureSkipVerify?: ("All" | "Hostname")
/**
 * ALPN protocols; default h2 and http/1.1, narrowed by the chosen HTTP version.
 * 
 * Items: Protocol name.
 */
alpn?: string[]
}
/**
 * One section of one ProxyPolicy (or what a BackendTLSPolicy asks for) for one target.
 * 
 */
export interface Policy {
/**
 * Unique among its kind. Shape: `<section>/<namespace>/<name>:<target index>`.
 */
key: string
/**
 * The object that this came from; what statuses, logs and `proxyctl explain` show.
 */
policy: {
/**
 * Kind.
 */
kind: ("ProxyPolicy" | "BackendTLSPolicy")
/**
 * Namespace.
 */
namespace: string
/**
 * Name.
 */
name: string
}
/**
 * RFC 3339. Same target, same field: the oldest wins, then `namespace/name`.
 */
creationTimestamp?: string
target: PolicyTarget
frontend?: Frontend
traffic?: Traffic
backend?: BackendFull
backendTls?: BackendTlsValidation
}
/**
 * What a policy is attached to.
 * 
 */
export interface PolicyTarget {
/**
 * Kind of the target.
 */
kind: ("Gateway" | "ListenerSet" | "HTTPRoute" | "GRPCRoute" | "Service" | "Backend" | "InferencePool")
/**
 * Namespace.
 */
namespace: string
/**
 * Name.
 */
name: string
/**
 * Listener, rule or sub-backend name.
 */
section?: string
/**
 * Service port.
 */
port?: number
}
/**
 * Configuration file of the data plane (`-f`), and content of `ProxyParameters.spec.rawConfig`.
 * 
 */
export interface ConfigFile {
config?: ProcessConfig
/**
 * Ports to listen on.
 */
binds?: FileBind[]
/**
 * Backends that routes refer to by name.
 */
backends?: FileBackend[]
/**
 * Services that routes refer to by `<namespace>/<name>`.
 */
services?: Service[]
/**
 * Policies with their targets, as the config stream carries them.
 */
policies?: Policy[]
}
/**
 * Settings of the process. Environment variables win over the file.
 * 
 */
export interface ProcessConfig {
/**
 * Logging.
 */
logging?: {
/**
 * `error`, `warn`, `info` (default), `debug`, `trace`, or comma-separated `module=level` pairs. Environment: PROXY_LOG.
 */
level?: string
/**
 * Default text.
 */
format?: ("json" | "text")
}
/**
 * Admin endpoint, `host:port`; default 127.0.0.1:15000. Environment: ADMIN_ADDR.
 */
adminAddr?: string
/**
 * Metrics endpoint, `host:port`; default 0.0.0.0:15020. Environment: STATS_ADDR.
 */
statsAddr?: string
/**
 * Readiness endpoint, `host:port`; default 0.0.0.0:15021. Environment: READINESS_ADDR.
 */
readinessAddr?: string
/**
 * Config stream, `http://host:port` or `https://host:port`. Environment: XDS_ADDRESS.
 */
xdsAddress?: string
/**
 * Namespace of the Gateway that this process serves. Environment: NAMESPACE.
 */
namespace?: string
/**
 * Name of the Gateway that this process serves. Environment: GATEWAY.
 */
gateway?: string
/**
 * Duration for which new requests are still accepted after SIGTERM. Environment: CONNECTION_MIN_TERMINATION_DEADLINE.
 */
connectionMinTerminationDeadline?: string
/**
 * Duration after which what is still open at shutdown is cut. Environment: TERMINATION_GRACE_PERIOD_SECONDS.
 */
connectionTerminationDeadline?: string
/**
 * Worker processes; default: CPU_LIMIT, or 1.
 */
workerThreads?: number
}
/**
 * A port.
 * 
 */
export interface FileBind {
/**
 * TCP port.
 */
port: number
/**
 * Default: all.
 * 
 * Items: IP address.
 */
addresses?: string[]
/**
 * Listeners.
 */
listeners: FileListener[]
}
/**
 * A listener.
 * 
 */
export interface FileListener {
/**
 * Name; default: `listener<index>`.
 */
name?: string
/**
 * Exact or `*.` hostname; default: any.
 */
hostname?: string
/**
 * Default: HTTPS when tls is given, TCP when only tcpRoutes are, else HTTP.
 */
protocol?: ("HTTP" | "HTTPS" | "TLS" | "TCP")
/**
 * TLS. Paths are relative to the file.
 */
tls?: {
/**
 * Default Terminate.
 */
mode?: ("Terminate" | "Passthrough")
/**
 * Certificate chain: a path, or PEM.
 */
cert?: string
/**
 * Private key: a path, or PEM.
 */
key?: string
/**
 * Trust anchors for client certificates: a path, or PEM. Setting it requires a client certificate.
 */
clientCa?: string
}
/**
 * HTTP routes.
 */
routes?: FileRoute[]
/**
 * TCP or TLS routes.
 */
tcpRoutes?: FileTcpRoute[]
policies?: Traffic
}
/**
 * A route: one rule.
 * 
 */
export interface FileRoute {
/**
 * Name; default: `route<index>`.
 */
name?: string
/**
 * Default: any.
 * 
 * Items: Hostname.
 */
hostnames?: string[]
/**
 * Default: every path.
 */
matches?: RouteMatch[]
filters?: RouteFilters
timeouts?: RouteTimeouts
retry?: RouteRetry
policies?: Traffic
/**
 * Destinations.
 */
backends?: FileWeightedBackend[]
}
/**
 * A destination: exactly one of host, service, backend, dynamicForwardProxy, ai, mcp, cloudBackend.
 * 
 */
export interface FileWeightedBackend {
/**
 * `host:port`.
 */
host?: string
/**
 * A service of this file.
 */
service?: {
/**
 * `<namespace>/<name>`.
 */
name: string
/**
 * Service port.
 */
port: number
}
/**
 * Name of a backend of this file.
 */
backend?: string
/**
 * The destination is the request’s Host.
 */
dynamicForwardProxy?: {

}
ai?: AIBackend
mcp?: MCPBackend
cloudBackend?: CloudBackend
/**
 * Default 1.
 */
weight?: number
policies?: BackendFull
}
/**
 * A TCP or TLS route.
 * 
 */
export interface FileTcpRoute {
/**
 * Name; default: `tcproute<index>`.
 */
name?: string
/**
 * Default: any.
 * 
 * Items: SNI.
 */
hostnames?: string[]
/**
 * Destinations.
 */
backends?: FileWeightedBackend[]
}
/**
 * A backend: exactly one kind.
 * 
 */
export interface FileBackend {
/**
 * Name, unique in the file.
 */
name: string
/**
 * `host:port`.
 */
host?: string
/**
 * The destination is the request’s Host.
 */
dynamicForwardProxy?: {

}
ai?: AIBackend
mcp?: MCPBackend
cloudBackend?: CloudBackend
policies?: BackendFull
}
