/** Written by `make generate`. Do not edit. */

/**
 * What a request is. Completions: OpenAI chat completions. Messages: Anthropic messages. Models: list of models. Passthrough: forwarded as it is. Detect: forwarded as it is, but read for telemetry and limits. Responses: OpenAI responses. TokenCount: token counting in the messages format. Embeddings: OpenAI embeddings. Realtime: OpenAI realtime (WebSocket).
 */
export type RouteType = 'Completions' | 'Messages' | 'Models' | 'Passthrough' | 'Detect' | 'Responses' | 'TokenCount' | 'Embeddings' | 'Realtime'
/**
 * Text of 1 to 256 characters.
 */
export type ShortString = string
/**
 * Text of 1 to 64 characters.
 */
export type TinyString = string
/**
 * Text of 1 to 1024 characters.
 */
export type LongString = string
/**
 * A Common Expression Language expression. The operator checks its syntax and reports an error in the status; an expression that does not compile always fails when evaluated. What a failed evaluation means is said where the expression is used.
 */
export type CELExpression = string
/**
 * HTTP header name (RFC 9110 token), or one of the pseudo headers `:authority`, `:method`, `:path`, `:scheme`, `:status`.
 */
export type HeaderName = string
/**
 * HTTP header name (RFC 9110 token), without pseudo headers.
 */
export type HTTPHeaderName = string
/**
 * TLS server name: a lower-case DNS name.
 */
export type SNI = string
/**
 * Duration as GEP-2257 writes it: up to four numbers with a unit h, m, s or ms, for example `3s`, `5m`, `1h30m`. No fractions, no sign.
 */
export type Duration = string
/**
 * Name of a part of an object: lower-case letters, digits, `-` and `.`.
 */
export type SectionName = string
/**
 * Whole milliseconds; 0 turns the limit off.
 */
export type Milliseconds = number

/**
 * Policies for requests. Where several policies select a request they merge field by field, not deeply: Gateway < Listener < Route < Route rule; on one target the oldest policy wins.
 */
export interface Traffic {
  /**
   * When the policies run. PreRouting runs before a route is chosen, to influence that choice; its target must be a Gateway, a listener or a ListenerSet. The two phases are independent: policies merge within a phase only. Default: "PostRouting".
   */
  phase?: 'PreRouting' | 'PostRouting'
  transformation?: Transformation
  extProc?: ExtProc
  extAuth?: ExtAuth
  rateLimit?: RateLimits
  cors?: CORS
  csrf?: CSRF
  headerModifiers?: HeaderModifiers
  hostRewrite?: HostnameRewrite
  timeouts?: Timeouts
  retry?: Retry
  authorization?: Authorization
  jwtAuthentication?: JWTAuthentication
  basicAuthentication?: BasicAuthentication
  apiKeyAuthentication?: APIKeyAuthentication
  directResponse?: DirectResponse
}
/**
 * A header whose value is computed.
 */
export interface HeaderTransformation {
  /**
   * Header, or pseudo header: `:method`, `:scheme`, `:authority`, `:path` (with query) on requests, `:status` on responses.
   */
  name: HeaderName
  /**
   * Value. When it fails, or gives neither string, bytes nor number, the header is removed, so that a client cannot smuggle its own; a pseudo header stays as it was.
   */
  value: CELExpression
}
/**
 * Changes to one message, made in the order metadata, add, set, remove, body.
 */
export interface Transform {
  /**
   * Headers to set; every existing value is replaced.
   *
   * @minItems 1
   * @maxItems 16
   */
  set?: HeaderTransformation[]
  /**
   * Headers to add; an existing header gets a further field line.
   *
   * @minItems 1
   * @maxItems 16
   */
  add?: HeaderTransformation[]
  /**
   * Headers to remove.
   *
   * @minItems 1
   * @maxItems 16
   *
   * Items: Header name; pseudo headers cannot be removed.
   */
  remove?: HeaderName[]
  /**
   * New body: strings and bytes as they are, other values as JSON. When it fails, the body is empty. An expression that reads the old body makes the proxy buffer it, up to `frontend.http.maxBufferSize`.
   */
  body?: CELExpression
  /**
   * Values computed first and kept as `metadata.<key>` for later expressions, the response side and logs. An entry that fails is left out.
   */
  metadata?: {
    [k: string]: CELExpression
  }
}
/**
 * Mutates requests and responses with CEL expressions.
 */
export interface Transformation {
  /**
   * Changes to the request before it is forwarded.
   */
  request?: Transform
  /**
   * Changes to the response before it reaches the client; sees `request` as it was sent, and `response`.
   */
  response?: Transform
}
/**
 * External processing: a gRPC service (Envoy's `envoy.service.ext_proc.v3.ExternalProcessor`) sees, and may change, headers, bodies and trailers of request and response. When it fails, the request is answered 500 unless failureMode says otherwise.
 */
export interface ExtProc {
  /**
   * The processor: a Service or a ProxyBackend.
   */
  backendRef: BackendRef
  /**
   * What happens when the processor fails: 500, or the exchange goes on without it. FailOpen holds as long as nothing of the request body was sent to it; later failures, and those of the response, are always 500. Default: "FailClosed".
   */
  failureMode?: 'FailClosed' | 'FailOpen'
  /**
   * How long the processor may take for each message. Unset: as long as the request may take.
   */
  messageTimeout?: Duration
  processingOptions?: ExtProcProcessing
}
/**
 * What the processor gets to see.
 */
export interface ExtProcProcessing {
  /**
   * Whether the processor gets the headers of the request. Default: "Send".
   */
  requestHeaderMode?: 'Send' | 'Skip'
  /**
   * How the processor gets the request's body. None: not at all. Buffered: as a whole, up to maxBufferSize; a longer one is an error. BufferedPartial: its beginning, up to maxBufferSize; the rest follows unchanged. FullDuplexStreamed: piece by piece, and what it sends back is the body. Default: "FullDuplexStreamed".
   */
  requestBodyMode?: 'None' | 'Buffered' | 'BufferedPartial' | 'FullDuplexStreamed'
  /**
   * Whether the processor gets the trailers of the request; they are always sent with FullDuplexStreamed bodies. Default: "Send".
   */
  requestTrailerMode?: 'Send' | 'Skip'
  /**
   * Whether the processor gets the headers of the response. Default: "Send".
   */
  responseHeaderMode?: 'Send' | 'Skip'
  /**
   * How the processor gets the response's body. None: not at all. Buffered: as a whole, up to maxBufferSize; a longer one is an error. BufferedPartial: its beginning, up to maxBufferSize; the rest follows unchanged. FullDuplexStreamed: piece by piece, and what it sends back is the body. Default: "FullDuplexStreamed".
   */
  responseBodyMode?: 'None' | 'Buffered' | 'BufferedPartial' | 'FullDuplexStreamed'
  /**
   * Whether the processor gets the trailers of the response; they are always sent with FullDuplexStreamed bodies. Default: "Send".
   */
  responseTrailerMode?: 'Send' | 'Skip'
  /**
   * Whether the processor may change, with its answer to the response headers, what it gets of the response's body and trailers. Default: false.
   */
  allowModeOverride?: boolean
}
/**
 * External authorization: a service decides about each request before it is forwarded. Exactly one of grpc, http. When the service cannot be reached or the reference does not resolve, the request is answered 403 unless failureMode says otherwise.
 */
export interface ExtAuth {
  /**
   * The authorization server: a Service or a ProxyBackend.
   */
  backendRef: BackendRef
  grpc?: AgentExtAuthGRPC
  http?: AgentExtAuthHTTP
  forwardBody?: ExtAuthBody
  /**
   * What happens to requests that the service gives no decision about: 403, or they pass. Default: "FailClosed".
   */
  failureMode?: 'FailClosed' | 'FailOpen'
}
/**
 * Asks by gRPC, in Envoy's protocol (`envoy.service.auth.v3.Authorization/Check`).
 */
export interface AgentExtAuthGRPC {
  /**
   * Fixed values sent as `context_extensions`.
   */
  contextExtensions?: {
    [k: string]: string
  }
  /**
   * Computed values sent as filter metadata of `metadata_context`; each must give a map, and one that fails is left out. When this is not set and a JWT was verified, its claims are sent under `envoy.filters.http.jwt_authn`.
   */
  requestMetadata?: {
    [k: string]: CELExpression
  }
}
/**
 * Asks by HTTP, with the method of the request. Status 200 allows; anything else is a denial and its status, headers and body go to the client. The call times out after 2 s.
 */
export interface AgentExtAuthHTTP {
  /**
   * Path to ask for; default: path and query of the request. When it fails, the request is answered 403.
   */
  path?: CELExpression
  /**
   * Where to send the client (302) when the server answers 401 or 403, for example a sign-in page.
   */
  redirect?: CELExpression
  /**
   * Request headers sent to the authorization server; pseudo headers are allowed. Default: only `Authorization`.
   *
   * @maxItems 64
   *
   * Items: Header name.
   */
  allowedRequestHeaders?: ShortString[]
  /**
   * Computed headers added to the call; one that fails is removed from it.
   */
  addRequestHeaders?: {
    [k: string]: CELExpression
  }
  /**
   * Headers copied from the server's answer to the request for the backend, replacing what the client sent.
   *
   * @maxItems 64
   *
   * Items: Header name.
   */
  allowedResponseHeaders?: ShortString[]
  /**
   * Values computed from `request` and the server's `response`, kept as `extauthz.<key>` for later expressions; an entry that fails is left out.
   */
  responseMetadata?: {
    [k: string]: CELExpression
  }
}
/**
 * When set, the request body is buffered, sent to the authorization server, and then forwarded unchanged.
 */
export interface ExtAuthBody {
  /**
   * Largest body in bytes. A larger one is answered 413 and the server is not asked.
   */
  maxSize: number
}
/**
 * Rate limits. A request over a limit is answered 429 and not forwarded. `local` and `global` merge separately with those of other policies.
 */
export interface RateLimits {
  /**
   * Limits counted in this replica only, without any call. All entries must admit the request; each entry has one budget for everything that its target serves.
   *
   * @minItems 1
   * @maxItems 16
   */
  local?: LocalRateLimit[]
  global?: GlobalRateLimit
}
/**
 * One budget: exactly one of requests, tokens. It starts full and is refilled once per unit. Responses carry x-ratelimit-limit, -remaining and -reset.
 */
export interface LocalRateLimit {
  /**
   * Requests per unit.
   */
  requests?: number
  /**
   * LLM tokens (input and output) per unit. They are charged when the response has ended, so the request that crosses the budget succeeds and later ones get 429. Other traffic is not limited.
   */
  tokens?: number
  /**
   * Length of the window.
   */
  unit: 'Seconds' | 'Minutes' | 'Hours'
  /**
   * Allowance above the rate: the budget holds requests (or tokens) plus burst.
   */
  burst?: number
}
/**
 * Limits kept by an external rate limit service (Envoy's `envoy.service.ratelimit.v3.RateLimitService`), shared by all replicas. When the service cannot be reached, requests are answered 500 unless failureMode says otherwise.
 */
export interface GlobalRateLimit {
  /**
   * The rate limit service: a Service or a ProxyBackend.
   */
  backendRef: BackendRef
  /**
   * Tells the applications of one rate limit service apart.
   */
  domain: ShortString
  /**
   * What is counted. The service limits on all of them.
   *
   * @minItems 1
   * @maxItems 16
   */
  descriptors: RateLimitDescriptor[]
  /**
   * What happens to requests that the service cannot be asked about: 500, or they pass. Default: "FailClosed".
   */
  failureMode?: 'FailClosed' | 'FailOpen'
}
/**
 * One counter of the rate limit service.
 */
export interface RateLimitDescriptor {
  /**
   * Key and value pairs that name the counter. One that fails drops the whole descriptor; when none is left, the service is not asked.
   *
   * @minItems 1
   * @maxItems 16
   */
  entries: RateLimitDescriptorEntry[]
  /**
   * Cost of a request: 1, or the LLM tokens it took, charged when the response has ended. Default: "Requests".
   */
  unit?: 'Requests' | 'Tokens'
}
/**
 * A key with a computed value.
 */
export interface RateLimitDescriptorEntry {
  /**
   * Key.
   */
  name: TinyString
  /**
   * Value, as a string; for example `source.address` for one counter per client address.
   */
  expression: CELExpression
}
/**
 * Gateway API HTTPCORSFilter.
 */
export interface CORS {
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
  allowMethods?: ('GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE' | 'CONNECT' | 'OPTIONS' | 'TRACE' | 'PATCH' | '*')[]
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
   * Seconds that a preflight answer may be cached. Default: 5.
   */
  maxAge?: number
}
/**
 * Protection against cross-site request forgery. GET, HEAD and OPTIONS pass, and so do requests with neither `Sec-Fetch-Site` nor `Origin`; others must come from the same origin or from one listed here, else 403.
 */
export interface CSRF {
  /**
   * Origins allowed besides that of the destination, compared as exact text.
   *
   * @minItems 1
   * @maxItems 16
   *
   * Items: Origin: `scheme://host` with optional `:port`.
   */
  additionalOrigins?: string[]
}
/**
 * A header and its value.
 */
export interface HTTPHeader {
  /**
   * Name, matched without regard to case.
   */
  name: HTTPHeaderName
  /**
   * Value; may be empty.
   */
  value: string
}
/**
 * Changes to the headers of a request or response, made in the order add, set, remove (Gateway API HTTPHeaderFilter).
 */
export interface HTTPHeaderFilter {
  /**
   * Headers to set; every existing value is replaced.
   *
   * @maxItems 16
   */
  set?: HTTPHeader[]
  /**
   * Headers to add as a further field line.
   *
   * @maxItems 16
   */
  add?: HTTPHeader[]
  /**
   * Headers to remove.
   *
   * @maxItems 16
   *
   * Items: Header name.
   */
  remove?: HTTPHeaderName[]
}
/**
 * A condition on one header (Gateway API HTTPHeaderMatch).
 */
export interface HTTPHeaderMatch {
  /**
   * How the value is compared. RegularExpression must match the whole value; RE2 syntax. Default: "Exact".
   */
  type?: 'Exact' | 'RegularExpression'
  /**
   * Name, matched without regard to case.
   */
  name: HTTPHeaderName
  /**
   * Value or pattern.
   */
  value: string
}
/**
 * Changes to request and response headers with fixed values; see `transformation` for computed ones. A header filter written in the route itself replaces this.
 */
export interface HeaderModifiers {
  /**
   * Changes to the request sent to the backend.
   */
  request?: HTTPHeaderFilter
  /**
   * Changes to the response sent to the client, locally made responses included.
   */
  response?: HTTPHeaderFilter
}
/**
 * What the backend sees as Host. Without this policy: Auto for backends named by host, None for Services and IP addresses. Ignored where a URLRewrite filter of the route sets a host.
 */
export interface HostnameRewrite {
  /**
   * Auto sets Host from the destination; None passes the Host of the client.
   */
  mode: 'Auto' | 'None'
}
/**
 * Timeouts of HTTPRoutes and GRPCRoutes; ignored elsewhere. `timeouts` of the route rule replaces this.
 */
export interface Timeouts {
  /**
   * Time from receipt of the request until the whole response, body included, has been received; covers retries. Late response head: 504; late body: the stream is aborted. At least 1ms.
   */
  request?: Duration
}
/**
 * Retries (Gateway API HTTPRouteRetry). Connection failures and timeouts of an attempt are always retried. `retry` of the route rule replaces this.
 */
export interface Retry {
  /**
   * Response codes that are retried.
   *
   * @maxItems 200
   *
   * Items: Status code.
   */
  codes?: number[]
  /**
   * Further tries after the first; more than 254 count as 254. Bodies are kept for replay up to 64 KiB; larger ones get one attempt. Default: 1.
   */
  attempts?: number
  /**
   * Delay before each retry; default: none. Never outlives timeouts.request.
   */
  backoff?: Duration
}
/**
 * Answers the request without forwarding it, after authentication, authorization and limits have passed.
 */
export interface DirectResponse {
  /**
   * Status code.
   */
  status: number
  /**
   * Body; none when not set.
   */
  body?: string
}
/**
 * Authorization by CEL expressions. The rules of all policies that apply to a request, on whatever level, are taken together within a phase: any Deny that matches denies; every Require must match; then, if there are Allow rules, one of them must match. A denied request is answered 403.
 */
export interface Authorization {
  policy: AuthorizationPolicy
  /**
   * What a match means. Allow and Deny match when any expression is true, Require when all are. An expression that fails counts as false. Default: "Allow".
   */
  action?: 'Allow' | 'Deny' | 'Require'
}
/**
 * Conditions.
 */
export interface AuthorizationPolicy {
  /**
   * Expressions that give a boolean, for example `jwt.team == "sales"` or `request.method == "GET"`.
   *
   * @minItems 1
   * @maxItems 256
   */
  matchExpressions: CELExpression[]
}
/**
 * Validates JSON Web Tokens sent as `Authorization: Bearer`. On success the token is removed from the request and its claims are usable as `jwt.<claim>`. Signature, `iss`, `aud` and `exp` (with 60 s leeway) are checked.
 */
export interface JWTAuthentication {
  /**
   * Strict: a valid token must be present, else 401. Optional: a token that is present must be valid; requests without one pass. Permissive: no request is rejected; claims of valid tokens are usable for later authorization and logging. Default: "Strict".
   */
  mode?: 'Strict' | 'Optional' | 'Permissive'
  /**
   * Accepted issuers. The `kid` of the token selects the provider.
   *
   * @minItems 1
   * @maxItems 64
   */
  providers: JWTProvider[]
}
/**
 * One issuer of tokens.
 */
export interface JWTProvider {
  /**
   * Required value of the `iss` claim.
   */
  issuer: ShortString
  /**
   * Accepted values of the `aud` claim; one must match. When not set, any audience, or none, is accepted.
   *
   * @minItems 1
   * @maxItems 64
   *
   * Items: Audience.
   */
  audiences?: string[]
  jwks: JWKS
}
/**
 * HTTP basic authentication (RFC 7617): exactly one of users, secretRef. On success the Authorization header is removed and the user is `basicAuth.username`.
 */
export interface BasicAuthentication {
  /**
   * Strict: valid credentials must be present, else 401. Optional: credentials that are present must be valid; requests without pass. Default: "Strict".
   */
  mode?: 'Strict' | 'Optional'
  /**
   * Realm in the WWW-Authenticate header of failed requests. Default: "Restricted".
   */
  realm?: string
  /**
   * Users with hashed passwords (MD5 `$apr1$`, bcrypt, `{SHA}`, crypt); raw passwords are never accepted. Lines that do not parse are skipped; of two lines for one user the last counts.
   *
   * @minItems 1
   * @maxItems 256
   *
   * Items: One htpasswd line, `username:hash`.
   */
  users?: string[]
  /**
   * Secret whose entry `.htaccess` is a complete htpasswd file. When it is missing nobody passes.
   */
  secretRef?: ResolvedSecret
}
/**
 * API keys sent as `Authorization: Bearer`: exactly one of secretRef, secretSelector. Each Secret entry is one key; the name of the entry is arbitrary, its value is the key, or a JSON object with `key` and `metadata`. On success the header is removed and the metadata is usable as `apiKey.<field>`.
 */
export interface APIKeyAuthentication {
  /**
   * Strict: a valid key must be present, else 401. Optional: a key that is present must be valid; requests without one pass. Permissive: no request is rejected. Default: "Strict".
   */
  mode?: 'Strict' | 'Optional' | 'Permissive'
  /**
   * Secret whose entries are API keys. When it is missing nobody passes.
   */
  secretRef?: ResolvedSecret
  /**
   * Selects several Secrets whose entries are API keys. The same key in several of them gives undefined behavior. When none matches nobody passes.
   */
  secretSelector?: ResolvedSecrets
}
/**
 * Settings of the connections that clients make, for a whole Gateway. TLS and HTTP settings affect new connections only.
 */
export interface Frontend {
  tcp?: FrontendTCP
  tls?: FrontendTLS
  http?: FrontendHTTP
  accessLog?: AccessLog
  tracing?: Tracing
  /**
   * Authorization of connections, before anything is read from them; expressions see only `source`. A denied connection is closed. Rules of all levels are taken together.
   */
  networkAuthorization?: Authorization
  proxyProtocol?: ProxyProtocol
}
/**
 * TCP settings of client connections.
 */
export interface FrontendTCP {
  keepalive?: Keepalive
}
/**
 * TLS settings of client connections. Only TLS 1.2 and 1.3 are supported.
 */
export interface FrontendTLS {
  /**
   * Time for the protocol to show and the handshake to end; then the connection is closed. At least 100ms. Default: "15s".
   */
  handshakeTimeout?: Duration
  /**
   * ALPN protocols offered, in order of preference. Default: h2 and http/1.1. Default: ["h2","http/1.1"].
   *
   * @minItems 1
   * @maxItems 16
   *
   * Items: Protocol name.
   */
  alpnProtocols?: TinyString[]
  /**
   * Lowest TLS version accepted. Default: 1.2. Quote it in YAML.
   */
  minProtocolVersion?: '1.2' | '1.3'
  /**
   * Highest TLS version accepted. Default: 1.3. Quote it in YAML.
   */
  maxProtocolVersion?: '1.2' | '1.3'
  /**
   * Cipher suites accepted. Default: the AES-GCM suites of TLS 1.3 and of ECDHE with ECDSA and RSA; ChaCha20 only where listed.
   *
   * @maxItems 9
   *
   * Items: Cipher suite.
   */
  cipherSuites?: (
    | 'TLS13_AES_256_GCM_SHA384'
    | 'TLS13_AES_128_GCM_SHA256'
    | 'TLS13_CHACHA20_POLY1305_SHA256'
    | 'TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384'
    | 'TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256'
    | 'TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256'
    | 'TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384'
    | 'TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256'
    | 'TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256'
  )[]
}
/**
 * HTTP settings of client connections.
 */
export interface FrontendHTTP {
  /**
   * Largest body in bytes that is held in memory, for policies that need a whole body. What happens to a larger one is said at each such policy. Default: 2097152.
   */
  maxBufferSize?: number
  /**
   * Most headers in an HTTP/1 request; more are answered 431. Default: 100.
   */
  http1MaxHeaders?: number
  /**
   * Time after which an unused HTTP/1 connection is closed, and within which a request head must arrive. At least 1s. Default: "10m".
   */
  http1IdleTimeout?: Duration
  /**
   * Initial flow-control window of a stream in bytes. With neither window set, windows adapt.
   */
  http2WindowSize?: number
  /**
   * Initial flow-control window of a connection in bytes.
   */
  http2ConnectionWindowSize?: number
  /**
   * Largest HTTP/2 frame accepted, in bytes. Default: 16384.
   */
  http2FrameSize?: number
  /**
   * Time between HTTP/2 pings. Not set: no pings. At least 1s.
   */
  http2KeepaliveInterval?: Duration
  /**
   * Time to wait for the answer to a ping before the connection is closed; only with http2KeepaliveInterval. Default: 20s. At least 1s.
   */
  http2KeepaliveTimeout?: Duration
  /**
   * Age at which a connection is asked to close (GOAWAY, or `connection: close`); requests in flight finish. Not set: no limit. At least 1s.
   */
  maxConnectionDuration?: Duration
}
/**
 * Reads a PROXY protocol header at the start of each connection and takes the client address from it.
 */
export interface ProxyProtocol {
  /**
   * Versions accepted. Default: "V2".
   */
  version?: 'V1' | 'V2' | 'All'
  /**
   * Strict closes connections without a header (5 s to send it); Optional lets them pass. Default: "Strict".
   */
  mode?: 'Strict' | 'Optional'
}
/**
 * Access log: one line on standard output per request, and optionally an OTLP log record.
 */
export interface AccessLog {
  /**
   * A request is logged only when this is true; failing counts as false. Default: all.
   */
  filter?: CELExpression
  attributes?: LogTracingAttributes
  otlp?: OtlpAccessLog
}
/**
 * Sends access logs to an OpenTelemetry collector, in batches that never delay requests.
 */
export interface OtlpAccessLog {
  /**
   * The collector: a Service or a ProxyBackend.
   */
  backendRef: BackendRef
  /**
   * OTLP over gRPC, or protobuf over HTTP. Default: "GRPC".
   */
  protocol?: 'HTTP' | 'GRPC'
  /**
   * Path for protocol HTTP. Default: /v1/logs.
   */
  path?: LongString
}
/**
 * Distributed tracing (W3C trace context); spans go to an OpenTelemetry collector in batches. Sampling is decided before authentication, so `jwt` is not available to it.
 */
export interface Tracing {
  /**
   * The collector: a Service or a ProxyBackend.
   */
  backendRef: BackendRef
  /**
   * OTLP over gRPC, or protobuf over HTTP. Default: "GRPC".
   */
  protocol?: 'HTTP' | 'GRPC'
  /**
   * Path for protocol HTTP. Default: /v1/traces.
   */
  path?: LongString
  attributes?: LogTracingAttributes
  /**
   * Resource attributes, evaluated once at start; expressions see only `env`.
   *
   * @maxItems 64
   */
  resources?: ResourceAdd[]
  /**
   * Whether a request without a trace starts one: a boolean, or a probability from 0.0 to 1.0. Failing counts as false. Not set: never.
   */
  randomSampling?: CELExpression
  /**
   * Whether a request that is part of a trace gets a span: a boolean, or a probability. Failing counts as false. Not set: always.
   */
  clientSampling?: CELExpression
}
/**
 * A resource attribute.
 */
export interface ResourceAdd {
  /**
   * Attribute name.
   */
  name: ShortString
  /**
   * Value; one that fails is left out.
   */
  expression: CELExpression
}
/**
 * Changes to the attributes that are recorded by default.
 */
export interface LogTracingAttributes {
  /**
   * Default attributes to leave out, for example `http.method`.
   *
   * @minItems 1
   * @maxItems 32
   *
   * Items: Attribute name.
   */
  remove?: TinyString[]
  /**
   * Attributes to add; one with the name of a default attribute replaces it.
   *
   * @minItems 1
   * @maxItems 64
   */
  add?: AttributeAdd[]
}
/**
 * A computed attribute.
 */
export interface AttributeAdd {
  /**
   * Attribute name.
   */
  name: ShortString
  /**
   * Value; the attribute is left out when this fails or gives null.
   */
  expression: CELExpression
}
/**
 * Policies for connections to backends. They merge field by field: Gateway < Listener < Route < Route rule < Backend or Service < the backend’s own policies.
 */
export interface BackendFull {
  tcp?: BackendTCP
  tls?: BackendTLS
  http?: BackendHTTP
  tunnel?: BackendTunnel
  /**
   * Changes to the request as it goes to this backend, on each attempt, and to its response.
   */
  transformation?: Transformation
  auth?: BackendAuth
  health?: Health
  ai?: BackendAI
  mcp?: BackendMCP
}
/**
 * Policies for connections to one service.
 */
export interface BackendSimple {
  tcp?: BackendTCP
  tls?: BackendTLS
  http?: BackendHTTP
  tunnel?: BackendTunnel
  /**
   * Changes to the request as it goes to this backend, on each attempt, and to its response.
   */
  transformation?: Transformation
  auth?: BackendAuth
  health?: Health
}
/**
 * Policies for connections to one LLM provider.
 */
export interface BackendWithAI {
  tcp?: BackendTCP
  tls?: BackendTLS
  http?: BackendHTTP
  tunnel?: BackendTunnel
  /**
   * Changes to the request as it goes to this backend, on each attempt, and to its response.
   */
  transformation?: Transformation
  auth?: BackendAuth
  health?: Health
  ai?: BackendAI
}
/**
 * Policies for connections to one MCP target.
 */
export interface BackendWithMCP {
  tcp?: BackendTCP
  tls?: BackendTLS
  http?: BackendHTTP
  tunnel?: BackendTunnel
  /**
   * Changes to the request as it goes to this backend, on each attempt, and to its response.
   */
  transformation?: Transformation
  auth?: BackendAuth
  health?: Health
  mcp?: BackendMCP
}
/**
 * TCP settings of connections to the backend.
 */
export interface BackendTCP {
  keepalive?: Keepalive
  /**
   * Time for a connection to be made; then the attempt fails with 504. Default: 10s. At least 100ms.
   */
  connectTimeout?: Duration
}
/**
 * HTTP settings of requests to the backend.
 */
export interface BackendHTTP {
  /**
   * HTTP version. Default: what appProtocol of the Service port says; HTTP2 for gRPC; the version of the client when it came in plaintext; HTTP1 when it came over TLS.
   */
  version?: 'HTTP1' | 'HTTP2'
  /**
   * Time for one attempt until the response head; then it fails with 504 and may be retried. At least 1ms.
   */
  requestTimeout?: Duration
}
/**
 * Reaches the backend through an HTTP proxy, by CONNECT.
 */
export interface BackendTunnel {
  /**
   * The proxy server to reach: a Service or a ProxyBackend.
   */
  backendRef: BackendRef
}
/**
 * Makes the proxy start TLS to the backend. With no fields set, the certificate is verified against the system CAs and SNI is taken from the destination.
 */
export interface BackendTLS {
  /**
   * Client certificate: a Secret with `tls.key` and `tls.crt`. A `ca.cert` in it verifies the server, unless caCertificateRefs is given. When the Secret is missing, connections fail.
   *
   * @maxItems 1
   */
  mtlsCertificateRef?: ResolvedSecret[]
  /**
   * CA certificates that verify the server; default: those of the system. When missing, connections fail.
   *
   * @maxItems 1
   */
  caCertificateRefs?: ResolvedSecret[]
  /**
   * All turns every check of the certificate off. Hostname verifies its chain but not its names.
   */
  insecureSkipVerify?: 'All' | 'Hostname'
  /**
   * Server name sent, and verified unless verifySubjectAltNames is given. Default: host name of the destination.
   */
  sni?: SNI
  /**
   * Names of which the certificate must carry one. Default: host name of the destination.
   *
   * @minItems 1
   * @maxItems 16
   *
   * Items: Subject alternative name.
   */
  verifySubjectAltNames?: ShortString[]
  /**
   * ALPN protocols offered. Default: h2 and http/1.1, narrowed to the HTTP version where that is given.
   *
   * @minItems 1
   * @maxItems 16
   *
   * Items: Protocol name.
   */
  alpnProtocols?: TinyString[]
}
/**
 * Credentials sent to the backend: exactly one of key, secretRef, passthrough, cloudA, cloudB, cloudC. When they cannot be had, the request fails with 500.
 */
export interface BackendAuth {
  /**
   * Value sent as `Authorization: Bearer`. Least secure: it is readable by all who may read this object; prefer secretRef.
   */
  key?: string
  /**
   * Secret whose entry `Authorization` is sent as `Authorization: Bearer`; white space around it and one leading `Bearer ` are removed.
   */
  secretRef?: ResolvedSecret
  /**
   * Adds back the credential that a client authentication policy (JWT, API key) validated and removed. No effect without such a policy.
   */
  passthrough?: {}
  cloudA?: CloudAAuth
  cloudB?: CloudBAuth
  cloudC?: CloudCAuth
}
/**
 * cloudA is AWS: requests are signed (Signature Version 4).
 */
export interface CloudAAuth {
  /**
   * Secret with entries `accessKey`, `secretKey` and optionally `sessionToken`. When not set, the usual sources are tried: environment, web identity, container and instance metadata.
   */
  secretRef?: ResolvedSecret
}
/**
 * cloudB is Azure: an access token of Microsoft Entra ID; exactly one of secretRef, managedIdentity.
 */
export interface CloudBAuth {
  /**
   * Secret with entries `clientId`, `tenantId` and `clientSecret`.
   */
  secretRef?: ResolvedSecret
  managedIdentity?: CloudBManagedIdentity
}
/**
 * A user-assigned managed identity.
 */
export interface CloudBManagedIdentity {
  /**
   * Client id.
   */
  clientId: string
  /**
   * Object id.
   */
  objectId: string
  /**
   * Resource id.
   */
  resourceId: string
}
/**
 * cloudC is Google Cloud: a token of the workload (application default credentials).
 */
export interface CloudCAuth {
  /**
   * AccessToken for Google APIs, IdToken for services such as Cloud Run. Default: "AccessToken".
   */
  type?: 'AccessToken' | 'IdToken'
  /**
   * Audience of the id token; only with IdToken. Default: `https://` and the host name of the backend.
   */
  audience?: ShortString
}
/**
 * Passive health checking: each response moves the health score of its endpoint (an exponentially weighted mean of successes, 0 to 100), and a bad endpoint can be evicted for a while. Without this policy nothing is evicted.
 */
export interface Health {
  /**
   * True means that a response is unhealthy, for example `response.code >= 500`. Default: any 5xx and every connection failure; that lowers the score but does not evict by itself.
   */
  unhealthyCondition?: CELExpression
  eviction?: BackendEviction
}
/**
 * When and how long an endpoint is taken out. Either threshold suffices; with neither, one unhealthy response evicts. When all endpoints are evicted, they are used all the same.
 */
export interface BackendEviction {
  /**
   * Base time of an eviction; multiplied by the number of evictions in a row. At least 1s. Default: "3s".
   */
  duration?: Duration
  /**
   * Health score on return. Not set: the score that it had when evicted.
   */
  restoreHealth?: number
  /**
   * Unhealthy responses in a row that evict; only a healthy one ends the row.
   */
  consecutiveFailures?: number
  /**
   * An unhealthy response evicts when the health score was below this already.
   */
  healthThreshold?: number
}
/**
 * LLM settings; only for backends of type ai. Merges field by field.
 */
export interface BackendAI {
  prompt?: AIPromptEnrichment
  promptGuard?: AIPromptGuard
  /**
   * Fields of the request body to set where the request does not.
   *
   * @minItems 1
   * @maxItems 64
   */
  defaults?: FieldDefault[]
  /**
   * Fields of the request body to set in any case.
   *
   * @minItems 1
   * @maxItems 64
   */
  overrides?: FieldDefault[]
  /**
   * Fields of the request body to compute. Wins over overrides of the same field.
   *
   * @minItems 1
   * @maxItems 64
   */
  transformations?: FieldTransformation[]
  /**
   * Model names that clients may use, each with the model name of the provider. A `*` in a name stands for any text; an exact name wins over patterns, a longer pattern over a shorter one.
   */
  modelAliases?: {
    [k: string]: string
  }
  promptCaching?: PromptCachingConfig
  /**
   * What requests are, by URL path: keys are path suffixes, the longest that fits decides; `*` fits any path. When not set, all requests are Completions.
   */
  routes?: {
    [k: string]: RouteType
  }
  /**
   * Prices of models, for `llm.cost` and the cost metric. Keys are model names as the provider answers or as it was asked; `*` stands for any text, an exact name wins over patterns, a longer pattern over a shorter one.
   */
  prices?: {
    [k: string]: ModelPrice
  }
  /**
   * Count the tokens of prompts, and take them from token limits before requests go out; the answer settles what they really took. Requests whose prompt does not fit get 429. Default: false.
   */
  reserveTokens?: boolean
}
/**
 * A field of the request body and its value.
 */
export interface FieldDefault {
  /**
   * Key of the JSON request body, top level.
   */
  field: ShortString
  /**
   * Value: any JSON but null.
   */
  value: {
    [k: string]: unknown
  }
}
/**
 * A field of the request body and how to compute it.
 */
export interface FieldTransformation {
  /**
   * Key of the JSON request body, top level.
   */
  field: ShortString
  /**
   * Value, computed from the request body (`llmRequest`). When it fails the field is removed.
   */
  expression: CELExpression
}
/**
 * Static messages added to every request; only for chat requests. A provider without a system role, but with a system field, needs `defaults` to set that field instead.
 */
export interface AIPromptEnrichment {
  /**
   * Messages before those of the request.
   */
  prepend?: Message[]
  /**
   * Messages after those of the request.
   */
  append?: Message[]
}
/**
 * A chat message.
 */
export interface Message {
  /**
   * Role, as the provider names it, for example `system` or `user`; upper case is lowered.
   */
  role: string
  /**
   * Text.
   */
  content: string
}
/**
 * Prices per million tokens, in a currency of your choice, as decimal numbers in text such as "2.50".
 */
export interface ModelPrice {
  /**
   * Of input tokens.
   */
  input: string
  /**
   * Of output tokens.
   */
  output: string
  /**
   * Of input tokens that the provider had in its cache. Default: input.
   */
  cacheRead?: string
  /**
   * Of input tokens that the provider put into its cache. Default: input.
   */
  cacheWrite?: string
  /**
   * Of output tokens that are reasoning. Default: output.
   */
  reasoning?: string
}
/**
 * Adds cache points to requests. Supported by providerF (Amazon Bedrock) for Claude 3 and later and Nova models; ignored elsewhere.
 */
export interface PromptCachingConfig {
  /**
   * Cache point after the system messages. Default: true.
   */
  cacheSystem?: boolean
  /**
   * Cache point in the conversation. Default: true.
   */
  cacheMessages?: boolean
  /**
   * Cache point after the tool specifications. Default: false.
   */
  cacheTools?: boolean
  /**
   * Least length of the system messages, estimated as words times 1.3. Default: 1024.
   */
  minTokens?: number
}
/**
 * Checks of prompts and answers, each list in order; the first that rejects ends the request.
 */
export interface AIPromptGuard {
  /**
   * Checks of the prompt.
   *
   * @minItems 1
   * @maxItems 8
   */
  request?: PromptguardRequest[]
  /**
   * Checks of the answer.
   *
   * @minItems 1
   * @maxItems 8
   */
  response?: PromptguardResponse[]
}
/**
 * One check of the prompt: exactly one of regex, webhook, moderationApi, cloudGuardrails, modelArmor. A service that cannot be reached rejects the request.
 */
export interface PromptguardRequest {
  regex?: Regex
  webhook?: Webhook
  moderationApi?: ModerationAPI
  cloudGuardrails?: CloudGuardrails
  modelArmor?: ModelArmor
  /**
   * Response to rejected requests. Default message: The request was rejected due to inappropriate content.
   */
  response?: CustomResponse
}
/**
 * One check of the answer: exactly one of regex, webhook, cloudGuardrails, modelArmor. A service that cannot be reached rejects the answer.
 */
export interface PromptguardResponse {
  regex?: Regex
  webhook?: Webhook
  cloudGuardrails?: CloudGuardrails
  modelArmor?: ModelArmor
  /**
   * Response in place of rejected answers. Default message: The response was rejected due to inappropriate content.
   */
  response?: CustomResponse
}
/**
 * What the client gets when content is rejected.
 */
export interface CustomResponse {
  /**
   * Body.
   */
  message?: string
  /**
   * Status code. Default: 403.
   */
  statusCode?: number
}
/**
 * Looks for patterns; `matches` and `builtins` add up.
 */
export interface Regex {
  /**
   * Own patterns. One that does not compile is reported in the status and rejects everything.
   *
   * @minItems 1
   *
   * Items: Pattern, RE2 syntax.
   */
  matches?: LongString[]
  /**
   * Ready-made patterns.
   *
   * @minItems 1
   *
   * Items: Ssn: US social security number. CreditCard: card number with valid check digit. CaSin: Canadian social insurance number.
   */
  builtins?: ('Ssn' | 'CreditCard' | 'PhoneNumber' | 'Email' | 'CaSin')[]
  /**
   * What happens on a match in a prompt: Mask replaces the text, Reject rejects the request. Matches in answers are always masked. Default: "Mask".
   */
  action?: 'Mask' | 'Reject'
}
/**
 * Asks an own service over HTTP.
 */
export interface Webhook {
  /**
   * The service: a Service or a ProxyBackend.
   */
  backendRef: BackendRef
  /**
   * Request headers to send along: those that any of these matches. Default: none.
   *
   * @maxItems 64
   */
  forwardHeaderMatches?: HTTPHeaderMatch[]
}
/**
 * Asks the moderation endpoint of OpenAI.
 */
export interface ModerationAPI {
  /**
   * Moderation model. Default: omni-moderation-latest.
   */
  model?: string
  /**
   * How to reach it; `auth` with key or secretRef is needed.
   */
  policies?: BackendSimple
}
/**
 * Asks Amazon Bedrock Guardrails.
 */
export interface CloudGuardrails {
  /**
   * Identifier of the guardrail.
   */
  identifier: ShortString
  /**
   * Version of the guardrail.
   */
  version: ShortString
  /**
   * AWS region.
   */
  region: ShortString
  /**
   * How to reach it; `auth` with cloudA, key or secretRef.
   */
  policies?: BackendSimple
}
/**
 * Asks Google Model Armor.
 */
export interface ModelArmor {
  /**
   * Id of the template.
   */
  templateId: ShortString
  /**
   * Google Cloud project.
   */
  projectId: ShortString
  /**
   * Location of the template. Default: "us-central1".
   */
  location?: ShortString
  /**
   * How to reach it; `auth` with cloudC.
   */
  policies?: BackendSimple
}
/**
 * MCP settings; only for backends of type mcp.
 */
export interface BackendMCP {
  /**
   * Authorization of each tool, prompt and resource (`mcp.tool.name`, `mcp.tool.target`, and so on): lists leave out what is not allowed, calls of it are rejected as unknown. Rules of all levels are taken together.
   */
  authorization?: Authorization
  authentication?: MCPAuthentication
}
/**
 * MCP OAuth: clients without a valid token are told where to get one, and the proxy serves the discovery documents and registers clients with the identity provider on their behalf.
 */
export interface MCPAuthentication {
  /**
   * Members of the protected resource metadata document (RFC 9728), for example `scopesSupported`; they win over computed ones.
   */
  resourceMetadata?: {
    /**
     * Any JSON value.
     */
    [k: string]: {
      [k: string]: unknown
    }
  }
  /**
   * Kind of identity provider whose metadata needs adapting. IdpKind1: Auth0. IdpKind2: Keycloak. Not set: one that follows the standards.
   */
  provider?: 'IdpKind1' | 'IdpKind2'
  /**
   * Required value of the `iss` claim; also where the metadata of the identity provider is looked for.
   */
  issuer?: ShortString
  /**
   * Accepted values of the `aud` claim; one must match. When not set, any audience, or none, is accepted.
   *
   * @minItems 1
   * @maxItems 64
   *
   * Items: Audience.
   */
  audiences?: string[]
  jwks: ResolvedKeySet
  /**
   * Strict: a valid token must be present, else 401. Optional: a token that is present must be valid; requests without one pass. Permissive: no request is rejected; claims of valid tokens are usable for later authorization and logging. Default: "Strict".
   */
  mode?: 'Strict' | 'Optional' | 'Permissive'
}
/**
 * An LLM backend: exactly one of provider, groups.
 */
export interface AIBackend {
  /**
   * The only provider. A policy can target it by `sectionName: backend`.
   */
  provider?: LLMProvider
  /**
   * Groups of providers in priority order: the first with a provider that is not evicted gets the request. Eviction needs `policies.health.eviction`.
   *
   * @minItems 1
   * @maxItems 8
   */
  groups?: PriorityGroup[]
}
/**
 * Providers of equal priority; healthier and faster ones get more requests.
 */
export interface PriorityGroup {
  /**
   * Providers. Names are unique across all groups.
   *
   * @minItems 1
   * @maxItems 16
   */
  providers: NamedLLMProvider[]
}
/**
 * One LLM provider: exactly one of providerA to providerF.
 */
export interface LLMProvider {
  providerA?: ProviderA
  providerB?: ProviderB
  providerC?: ProviderC
  providerD?: ProviderD
  providerE?: ProviderE
  providerF?: ProviderF
  /**
   * Host to send requests to, in plaintext unless `policies.tls` is set; needs port. Default: the host of the provider, over TLS.
   */
  host?: ShortString
  /**
   * Port to send requests to; needs host. Default: 443.
   */
  port?: number
  /**
   * Path of all requests to the provider, instead of its own.
   */
  path?: LongString
}
/**
 * One LLM provider of a group: exactly one of providerA to providerF.
 */
export interface NamedLLMProvider {
  /**
   * Name, unique in the backend; a policy can target the provider by it (`sectionName`).
   */
  name: SectionName
  providerA?: ProviderA
  providerB?: ProviderB
  providerC?: ProviderC
  providerD?: ProviderD
  providerE?: ProviderE
  providerF?: ProviderF
  /**
   * Host to send requests to, in plaintext unless `policies.tls` is set; needs port. Default: the host of the provider, over TLS.
   */
  host?: ShortString
  /**
   * Port to send requests to; needs host. Default: 443.
   */
  port?: number
  /**
   * Path of all requests to the provider, instead of its own.
   */
  path?: LongString
  /**
   * Policies for this provider; they win over those of the backend.
   */
  policies?: BackendWithAI
}
/**
 * providerA is OpenAI.
 */
export interface ProviderA {
  /**
   * Model to use instead of the one that the request names. Not set: that of the request.
   */
  model?: ShortString
}
/**
 * providerB is Azure OpenAI.
 */
export interface ProviderB {
  /**
   * Host of the resource, for example `my-resource.openai.azure.com`; a leading `https://` is removed.
   */
  endpoint: ShortString
  /**
   * Deployment to use. Required unless apiVersion is v1, where the request can name the model.
   */
  deploymentName?: ShortString
  /**
   * API version. Default: "v1".
   */
  apiVersion?: TinyString
}
/**
 * providerC is Anthropic.
 */
export interface ProviderC {
  /**
   * Model to use instead of the one that the request names. Not set: that of the request.
   */
  model?: ShortString
}
/**
 * providerD is Google Gemini.
 */
export interface ProviderD {
  /**
   * Model to use instead of the one that the request names. Not set: that of the request.
   */
  model?: ShortString
}
/**
 * providerE is Google Vertex AI.
 */
export interface ProviderE {
  /**
   * Model to use instead of the one that the request names. Not set: that of the request.
   */
  model?: ShortString
  /**
   * Google Cloud project.
   */
  projectId: TinyString
  /**
   * Region, for example `us-central1`; also `global`, `us` and `eu`.
   */
  region: TinyString
}
/**
 * providerF is Amazon Bedrock.
 */
export interface ProviderF {
  /**
   * AWS region. Default: "us-east-1".
   */
  region?: string
  /**
   * Model to use instead of the one that the request names. Not set: that of the request.
   */
  model?: ShortString
  /**
   * Bedrock guardrail applied by the provider itself. Not set: none.
   */
  guardrail?: {
    /**
     * Identifier of the guardrail.
     */
    identifier: ShortString
    /**
     * Version of the guardrail.
     */
    version: ShortString
  }
}
/**
 * A backend that speaks the Model Context Protocol. Several targets are merged into one server; their tools, prompts and resources get the target name as prefix.
 */
export interface MCPBackend {
  /**
   * MCP servers.
   *
   * @minItems 1
   * @maxItems 32
   */
  targets: McpTargetSelector[]
  /**
   * Stateful gives clients a session (`mcp-session-id`) that keeps going to the same replica of each target. Stateless makes a session with the target for each request. Default: "Stateful".
   */
  sessionRouting?: 'Stateful' | 'Stateless'
  /**
   * When a target fails: FailClosed fails requests that need all targets; FailOpen answers with what the others gave. Default: "FailClosed".
   */
  failureMode?: 'FailClosed' | 'FailOpen'
  /**
   * Whether names get the target name as prefix. Conditional: with more than one target. Never: names that several targets offer are left out. Default: "Conditional".
   */
  prefixMode?: 'Conditional' | 'Always' | 'Never'
}
/**
 * One or more MCP servers: exactly one of selector, static.
 */
export interface McpTargetSelector {
  /**
   * Name, unique in the backend; a policy can target it by `sectionName`.
   */
  name: SectionName
  selector?: ResolvedMcpTargets
  static?: McpTarget
}
/**
 * One MCP server at a fixed address. For Services in the cluster prefer selector.
 */
export interface McpTarget {
  /**
   * Host name or IP address.
   */
  host: ShortString
  /**
   * Port.
   */
  port: number
  /**
   * Path of the MCP endpoint. Default: /sse for SSE, /mcp for StreamableHTTP.
   */
  path?: LongString
  /**
   * Transport: StreamableHTTP, or the older HTTP with SSE. Default: "StreamableHTTP".
   */
  protocol?: 'StreamableHTTP' | 'SSE'
  /**
   * Policies for this target; they win over those of the backend and of ProxyPolicies.
   */
  policies?: BackendWithMCP
}
/**
 * A cloud service: exactly one of agentRuntime.
 */
export interface CloudBackend {
  agentRuntime?: AgentRuntime
}
/**
 * An agent hosted on Amazon Bedrock AgentCore. Requests are passed on uninterpreted and signed with `policies.auth.cloudA`, or the credentials of the environment.
 */
export interface AgentRuntime {
  /**
   * ARN of the runtime, `arn:aws:bedrock-agentcore:<region>:<account>:runtime/<id>`.
   */
  agentRuntimeRef: string
  /**
   * Alias or version of the runtime.
   */
  qualifier?: string
}
/**
 * Where the keys that verify tokens come from: exactly one of remote, inline.
 */
export interface JWKS {
  remote?: ResolvedKeySet
  /**
   * A JSON Web Key Set as text. One that does not parse is reported in the status and no token verifies.
   */
  inline?: string
}
/**
 * TCP keepalive.
 */
export interface Keepalive {
  /**
   * Unanswered probes after which the connection is dropped. Default: 9.
   */
  retries?: number
  /**
   * Idle time before the first probe. At least 1s. Default: "180s".
   */
  time?: Duration
  /**
   * Time between probes. At least 1s. Default: "180s".
   */
  interval?: Duration
}
/**
 * A Secret or ConfigMap, as a message: exactly one of secret, invalid.
 */
export interface ResolvedSecret {
  /**
   * Key of a Secret message: opaque for credentials, tls for certificates, ca for trust anchors.
   */
  secret?: string
  /**
   * Why the reference does not resolve. Whatever needs it fails closed; the text is for logs.
   */
  invalid?: string
}
/**
 * The Secrets that a selector matches.
 */
export interface ResolvedSecrets {
  /**
   * Secrets. Empty: no credential is valid.
   *
   * Items: Key of a Secret message.
   */
  secrets: string[]
}
/**
 * A key set that the operator fetched: exactly one of inline, invalid.
 */
export interface ResolvedKeySet {
  /**
   * JSON Web Key Set as text.
   */
  inline?: string
  /**
   * Why the reference does not resolve. Whatever needs it fails closed; the text is for logs.
   */
  invalid?: string
  /**
   * Where it was fetched, for who needs other documents of the same host (MCP authentication).
   */
  from?: BackendRef
}
/**
 * The MCP servers that a selector matches.
 */
export interface ResolvedMcpTargets {
  /**
   * Servers. Empty: 503.
   *
   * Items: One MCP server.
   */
  targets: {
    /**
     * Name, unique in the backend.
     */
    name: string
    /**
     * Key of a Service message.
     */
    service: string
    /**
     * Port of the Service.
     */
    port: number
    /**
     * Path; default /mcp, or /sse for SSE.
     */
    path?: string
    /**
     * Transport.
     */
    protocol: 'StreamableHTTP' | 'SSE'
  }[]
}
/**
 * One port that the data plane listens on. What is spoken there follows from its listeners: a port may mix HTTP, HTTPS and TLS; TCP stands alone.
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
 */
export interface Listener {
  /**
   * Unique among its kind. Shape: `<namespace>/<gateway>.<section>, or listenerset/<namespace>/<listener set>/<section>`.
   */
  key: string
  /**
   * Key of the bind it listens on.
   */
  bind: string
  gateway: GatewayRef
  /**
   * Set when the listener comes from a ListenerSet.
   */
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
  protocol: 'HTTP' | 'HTTPS' | 'TLS' | 'TCP'
  /**
   * Set for HTTPS and TLS, and only there.
   */
  tls?: ListenerTls
}
/**
 * TLS of a listener.
 */
export interface ListenerTls {
  /**
   * Terminate decrypts here; Passthrough relays bytes by SNI.
   */
  mode: 'Terminate' | 'Passthrough'
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
 */
export interface ClientValidation {
  /**
   * AllowValidOnly requires a certificate that verifies. AllowInsecureFallback asks, accepts a missing or invalid one, and exposes no identity then.
   */
  mode: 'AllowValidOnly' | 'AllowInsecureFallback'
  /**
   * Trust anchors, concatenated. None that resolves: every handshake fails.
   *
   * Items: Key of a Secret message of type ca.
   */
  caCertificates: string[]
}
/**
 * Key material. Never logged; `/config_dump` shows `<redacted>`.
 */
export interface Secret {
  /**
   * Unique among its kind. Shape: `<type>/<namespace>/<name>; ca/configmap/<namespace>/<name> and ca/secret/<namespace>/<name>/<entry> for trust anchors`.
   */
  key: string
  /**
   * tls: certificate and privateKey. ca: certificate. opaque: data.
   */
  type: 'tls' | 'ca' | 'opaque'
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
 */
export interface RouteRef {
  /**
   * Kind of the route.
   */
  kind: 'HTTPRoute' | 'GRPCRoute' | 'TCPRoute' | 'TLSRoute'
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
 * All given conditions must hold.
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
 */
export interface PathMatch {
  /**
   * PathPrefix is segment-wise; RegularExpression matches the full path, RE2 syntax.
   */
  type: 'Exact' | 'PathPrefix' | 'RegularExpression'
  /**
   * Value.
   */
  value: string
}
/**
 * Condition on a header or query parameter.
 */
export interface ValueMatch {
  /**
   * Name; lower case for headers.
   */
  name: string
  /**
   * RegularExpression matches the full value, RE2 syntax.
   */
  type: 'Exact' | 'RegularExpression'
  /**
   * Value.
   */
  value: string
}
/**
 * A header to write.
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
 * Changes to a head, in the order add, set, remove.
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
 * How a path is rewritten.
 */
export interface PathModifier {
  /**
   * ReplacePrefixMatch needs a PathPrefix match and is segment-aware.
   */
  type: 'ReplaceFullPath' | 'ReplacePrefixMatch'
  /**
   * Replacement.
   */
  value: string
}
/**
 * Answers with a redirect instead of forwarding.
 */
export interface RequestRedirect {
  /**
   * Scheme of Location; default: that of the request.
   */
  scheme?: 'http' | 'https'
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
   * Status. Default: 302.
   */
  statusCode?: 301 | 302 | 303 | 307 | 308
}
/**
 * Rewrites what the upstream sees.
 */
export interface UrlRewrite {
  /**
   * Replaces the authority and turns automatic host rewriting off.
   */
  hostname?: string
  path?: PathModifier
}
/**
 * Copies the request head to another backend; its answer is discarded.
 */
export interface RequestMirror {
  backend: BackendRef
  /**
   * Share of requests: numerator / denominator. Default: 100.
   */
  numerator?: number
  /**
   * See numerator. Default: 100.
   */
  denominator?: number
}
/**
 * Filters written in the rule itself; each kind replaces the same kind coming from a ProxyPolicy.
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
  cors?: CORS
  extAuth?: RouteExtAuth
  /**
   * Set when the rule cannot be honoured: every matching request gets 500 `failed to apply filters: <this text>`.
   */
  invalid?: string
}
/**
 * An ExternalAuth filter: a policy, and what only the filter can say.
 */
export interface RouteExtAuth {
  policy: ExtAuth
  /**
   * Request headers sent to a gRPC server. Absent: all.
   *
   * Items: Header name.
   */
  grpcHeaders?: string[]
  /**
   * An HTTP server gets the request's own Host.
   */
  isHostSent?: boolean
  /**
   * All headers of an HTTP server's answer are copied to the request, without those of its framing.
   */
  areAllHeadersCopied?: boolean
}
/**
 * Gateway API HTTPRouteTimeouts.
 */
export interface RouteTimeouts {
  /**
   * Whole response, body included, from receipt of the request head; covers retries and backoff. Late head: 504; late body: aborted.
   */
  requestMs?: Milliseconds
  /**
   * One attempt, until the response head. Late: 504, retryable.
   */
  backendRequestMs?: Milliseconds
}
/**
 * Gateway API HTTPRouteRetry.
 */
export interface RouteRetry {
  /**
   * Statuses that are retried, besides connection failures and attempt timeouts.
   *
   * Items: Status.
   */
  codes?: number[]
  /**
   * Extra tries; 0 turns retrying off. Default: 1.
   */
  attempts?: number
  /**
   * Fixed delay before each retry.
   */
  backoffMs?: Milliseconds
}
/**
 * A destination. Exactly one of service, backend, address, invalid.
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
  invalid?: 'BACKEND_NOT_FOUND' | 'SERVICE_NOT_FOUND' | 'NO_VALID_BACKENDS'
}
/**
 * One of the destinations of a rule.
 */
export interface WeightedBackend {
  ref: BackendRef
  /**
   * Share among the rule’s backends; 0 is never chosen. Default: 1.
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
 * A Kubernetes Service, or an InferencePool, with its endpoints.
 */
export interface Service {
  /**
   * Unique among its kind. Shape: `<namespace>/<name>, for an InferencePool <namespace>/<name>.inference`.
   */
  key: string
  /**
   * `<name>.<namespace>.svc.<cluster domain>`, of an InferencePool `.inference.`; SNI default, and Host under hostRewrite Auto.
   */
  hostname?: string
  /**
   * Ports.
   */
  ports: ServicePort[]
  /**
   * Preferred locality of endpoints.
   */
  trafficDistribution?: 'PreferSameZone' | 'PreferSameNode' | 'PreferClose'
  /**
   * Local uses endpoints of the data plane’s own node only.
   */
  internalTrafficPolicy?: 'Cluster' | 'Local'
  /**
   * InferencePools only. Absent: balanced like a Service.
   */
  picker?: EndpointPicker
}
/**
 * Who chooses among the endpoints of an InferencePool, for each request: an ext_proc service (Endpoint Picker Protocol 1.0).
 */
export interface EndpointPicker {
  backend: BackendRef
  /**
   * When the picker cannot be asked: FailOpen balances over the endpoints, FailClose answers 503. Default: "FailClose".
   */
  failureMode?: 'FailOpen' | 'FailClose'
  /**
   * Called without TLS; otherwise with TLS whose certificate is not verified, unless a policy on the Service says how.
   */
  isPlaintext?: boolean
}
/**
 * One port of a Service.
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
  appProtocol?: 'HTTP11' | 'HTTP2' | 'GRPC' | 'WS' | 'TCP' | 'TLS'
  /**
   * Ready endpoints. Empty: 503.
   */
  endpoints: Endpoint[]
}
/**
 * One address that serves a port.
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
  dynamicForwardProxy?: {}
  ai?: AIBackend
  mcp?: MCPBackend
  cloudBackend?: CloudBackend
  /**
   * Policies written on the backend itself; they win over attached ones.
   */
  policies?: BackendFull
}
/**
 * Backend TLS as the operator resolved it, from a BackendTLSPolicy or a ProxyPolicy’s `backend.tls`.
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
    type: 'Hostname' | 'URI'
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
  insecureSkipVerify?: 'All' | 'Hostname'
  /**
   * ALPN protocols; default h2 and http/1.1, narrowed by the chosen HTTP version.
   *
   * Items: Protocol name.
   */
  alpn?: string[]
}
/**
 * One section of one ProxyPolicy (or what a BackendTLSPolicy asks for) for one target.
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
    kind: 'ProxyPolicy' | 'BackendTLSPolicy'
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
 */
export interface PolicyTarget {
  /**
   * Kind of the target.
   */
  kind: 'Gateway' | 'ListenerSet' | 'HTTPRoute' | 'GRPCRoute' | 'Service' | 'Backend' | 'InferencePool'
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
   * Credentials and certificates that policies refer to by key.
   */
  secrets?: Secret[]
  /**
   * Policies with their targets, as the config stream carries them.
   */
  policies?: Policy[]
}
/**
 * Settings of the process. Environment variables win over the file.
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
    format?: 'json' | 'text'
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
}
/**
 * A port.
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
  protocol?: 'HTTP' | 'HTTPS' | 'TLS' | 'TCP'
  /**
   * TLS. Paths are relative to the file.
   */
  tls?: {
    /**
     * Default Terminate.
     */
    mode?: 'Terminate' | 'Passthrough'
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
  /**
   * Traffic policies of all its routes.
   */
  policies?: Traffic
}
/**
 * A route: one rule.
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
  /**
   * Traffic policies of this route.
   */
  policies?: Traffic
  /**
   * Destinations.
   */
  backends?: FileWeightedBackend[]
}
/**
 * A TCP or TLS route.
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
 * A destination: exactly one of host, service, backend, dynamicForwardProxy, ai, mcp, cloudBackend.
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
  dynamicForwardProxy?: {}
  ai?: AIBackend
  mcp?: MCPBackend
  cloudBackend?: CloudBackend
  /**
   * Default 1.
   */
  weight?: number
  /**
   * Policies of this destination.
   */
  policies?: BackendFull
}
/**
 * A backend: exactly one kind.
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
  dynamicForwardProxy?: {}
  ai?: AIBackend
  mcp?: MCPBackend
  cloudBackend?: CloudBackend
  policies?: BackendFull
}
/**
 * Type of each kind of message of the config stream.
 */
export interface MessageTypes {
  bind: Bind
  listener: Listener
  route: Route
  tcpRoute: TcpRoute
  backend: Backend
  policy: Policy
  secret: Secret
  service: Service
}
