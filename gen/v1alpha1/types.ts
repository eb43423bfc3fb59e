/** Written by `make generate`. Do not edit. */

/**
 * Conditions, one of each type.
 *
 * @maxItems 8
 */
export type Conditions = Condition[]
/**
 * IPv4 or IPv6 address, or a range of them as `address/prefix length`: `10.0.0.0/8`, `2001:db8::/32`, `192.0.2.7`.
 */
export type CIDR = string
/**
 * Type of a request. Completions: OpenAI chat completions. Messages: Anthropic messages. Models: list of models. Passthrough: forwarded unchanged. Detect: forwarded unchanged, but parsed for telemetry and limits. Responses: OpenAI responses. TokenCount: token counting in the messages format. Embeddings: OpenAI embeddings. Realtime: OpenAI realtime (WebSocket). Gemini: generateContent, countTokens and embedContent. Rerank: rankings of documents as Cohere, Jina and vLLM have them. Moderations: OpenAI moderations.
 */
export type RouteType =
  | 'Completions'
  | 'Messages'
  | 'Models'
  | 'Passthrough'
  | 'Detect'
  | 'Responses'
  | 'TokenCount'
  | 'Embeddings'
  | 'Realtime'
  | 'Gemini'
  | 'Rerank'
  | 'Moderations'
/**
 * IPv4 or IPv6 address, a range of them as `address/prefix length`, a host name, or `*.` and a domain, which matches every name below it.
 */
export type Destination = string
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
 * A Common Expression Language (CEL) expression. One that does not compile is reported in the status and always fails; the field says what a failure does.
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
 * Host name or IP address, without scheme, user, port and path.
 */
export type Host = string
/**
 * TLS server name: a lower-case DNS name.
 */
export type SNI = string
/**
 * Duration in the format of GEP-2257: up to four numbers with a unit h, m, s or ms, for example `3s`, `5m`, `1h30m`. No fractions, no sign.
 */
export type Duration = string
/**
 * Name of a part of an object: lower-case letters, digits, `-` and `.`.
 */
export type SectionName = string

/**
 * Policies for client connections (frontend), requests (traffic) and connections to backends (backend), attached to Gateways, routes, Services or backends.
 */
export interface ProxyPolicy {
  /**
   * Version of the schema of this object.
   */
  apiVersion: 'proxy.dev/v1alpha1'
  /**
   * Kind of this object.
   */
  kind: 'ProxyPolicy'
  metadata: ObjectMeta
  spec: ProxyPolicySpec
  status?: ProxyPolicyStatus
}
/**
 * A destination other than a Service, for backendRefs: a fixed host, the host of the request, LLM providers, MCP servers, a cloud service.
 */
export interface ProxyBackend {
  /**
   * Version of the schema of this object.
   */
  apiVersion: 'proxy.dev/v1alpha1'
  /**
   * Kind of this object.
   */
  kind: 'ProxyBackend'
  metadata: ObjectMeta
  spec: ProxyBackendSpec
  status?: ProxyBackendStatus
}
/**
 * Deployment settings of data planes, for parametersRef of a GatewayClass or infrastructure.parametersRef of a Gateway.
 */
export interface ProxyParameters {
  /**
   * Version of the schema of this object.
   */
  apiVersion: 'proxy.dev/v1alpha1'
  /**
   * Kind of this object.
   */
  kind: 'ProxyParameters'
  metadata: ObjectMeta
  spec: ProxyParametersSpec
  status?: ProxyParametersStatus
}
/**
 * Exactly one of ai, static, dynamicForwardProxy, mcp, cloudBackend, a2a, and optionally policies.
 */
export interface ProxyBackendSpec {
  ai?: AIBackend
  static?: StaticBackend
  dynamicForwardProxy?: DynamicForwardProxyBackend
  mcp?: MCPBackend
  cloudBackend?: CloudBackend
  a2a?: A2ABackend
  /**
   * Policies for connections to this backend; they merge field by field with those of ProxyPolicies and take precedence.
   */
  policies?: BackendFull
}
/**
 * Whether the backend is usable.
 */
export interface ProxyBackendStatus {
  conditions?: Conditions
  /**
   * Rollouts of models.
   *
   * @minItems 0
   * @maxItems 64
   */
  rollouts?: AIModelRolloutState[]
}
/**
 * One aspect of the state of an object (metav1 Condition).
 */
export interface Condition {
  /**
   * Type of the condition.
   */
  type: string
  /**
   * Whether the condition is true.
   */
  status: 'True' | 'False' | 'Unknown'
  /**
   * Generation of the object that the condition was computed from.
   */
  observedGeneration?: number
  /**
   * When status last changed.
   */
  lastTransitionTime: string
  /**
   * Reason as one word.
   */
  reason: string
  /**
   * Reason as text.
   */
  message: string
}
/**
 * Standard object metadata (metav1 ObjectMeta); the fields that this project reads.
 */
export interface ObjectMeta {
  /**
   * Name.
   */
  name?: string
  /**
   * Prefix of a generated name.
   */
  generateName?: string
  /**
   * Namespace.
   */
  namespace?: string
  /**
   * Unique id.
   */
  uid?: string
  /**
   * Version of the stored object.
   */
  resourceVersion?: string
  /**
   * Number of changes to spec.
   */
  generation?: number
  /**
   * RFC 3339.
   */
  creationTimestamp?: string
  /**
   * RFC 3339; set while the object is being deleted.
   */
  deletionTimestamp?: string
  /**
   * Labels.
   */
  labels?: {
    [k: string]: string
  }
  /**
   * Annotations.
   */
  annotations?: {
    [k: string]: string
  }
  /**
   * Finalizers.
   */
  finalizers?: string[]
  /**
   * Owners.
   *
   * Items: An owner.
   */
  ownerReferences?: {
    /**
     * API version of the owner.
     */
    apiVersion: string
    /**
     * Kind of the owner.
     */
    kind: string
    /**
     * Name of the owner.
     */
    name: string
    /**
     * Id of the owner.
     */
    uid: string
    /**
     * Whether the owner is the managing controller.
     */
    controller?: boolean
    /**
     * Whether the owner waits for this object to be deleted.
     */
    blockOwnerDeletion?: boolean
  }[]
  /**
   * Field managers.
   *
   * Items: Which field manager set which fields.
   */
  managedFields?: {
    [k: string]: unknown
  }[]
}
/**
 * Policies and what they apply to. A policy has at least one of traffic, frontend, backend.
 */
export interface ProxyPolicySpec {
  /**
   * Objects that the policy applies to, by name; in the namespace of the policy, all of one kind.
   *
   * @minItems 1
   * @maxItems 16
   */
  targetRefs?: PolicyTargetReference[]
  /**
   * Objects that the policy applies to, by label; in the namespace of the policy, all of one kind.
   *
   * @minItems 1
   * @maxItems 16
   */
  targetSelectors?: PolicyTargetSelector[]
  /**
   * Settings of the connections that clients make. Targets must be Gateways, without sectionName.
   */
  frontend?: Frontend
  /**
   * Policies for requests. Targets: Gateway, ListenerSet, HTTPRoute, GRPCRoute, InferencePool.
   */
  traffic?: Traffic
  /**
   * Policies for connections to backends. Targets: any; targeting more than a Service or ProxyBackend groups the backends that are reached through the target.
   */
  backend?: BackendFull
}
/**
 * An object, by name.
 */
export interface PolicyTargetReference {
  /**
   * API group of the target: empty for a Service.
   */
  group: string
  /**
   * Kind of the target: Gateway, ListenerSet, HTTPRoute, GRPCRoute, Service, ProxyBackend or InferencePool.
   */
  kind: string
  /**
   * Name of the target.
   */
  name: string
  /**
   * Part of the target: a listener of a Gateway or ListenerSet, a rule of a route, a port (number) of a Service, a target or provider of a ProxyBackend. Not set: the whole target.
   */
  sectionName?: SectionName
}
/**
 * Objects of one kind, by label.
 */
export interface PolicyTargetSelector {
  /**
   * API group of the target: empty for a Service.
   */
  group: string
  /**
   * Kind of the target: Gateway, ListenerSet, HTTPRoute, GRPCRoute, Service, ProxyBackend or InferencePool.
   */
  kind: string
  /**
   * Labels that a target must all have; empty selects every object of the kind.
   */
  matchLabels: {
    /**
     * Label value.
     */
    [k: string]: string
  }
  /**
   * Part of the target: a listener of a Gateway or ListenerSet, a rule of a route, a port (number) of a Service, a target or provider of a ProxyBackend. Not set: the whole target.
   */
  sectionName?: SectionName
}
/**
 * Status of the policy for each Gateway.
 */
export interface ProxyPolicyStatus {
  conditions?: Conditions
  /**
   * One entry for each Gateway that the policy takes effect on. One named StatusSummary lists the targets that the policy could not be attached to.
   *
   * @maxItems 16
   */
  ancestors: PolicyAncestorStatus[]
  /**
   * The source of each plugin that data planes receive. Data planes keep an older version while a new one cannot be loaded.
   *
   * @maxItems 16
   */
  plugins?: PluginStatus[]
}
/**
 * The source of a plugin.
 */
export interface PluginStatus {
  /**
   * Name of the plugin.
   */
  name: string
  /**
   * Digest of the source: `sha256:` and 64 hexadecimal digits.
   */
  digest: string
}
/**
 * Status of the policy on one Gateway.
 */
export interface PolicyAncestorStatus {
  ancestorRef: ParentReference
  /**
   * Controller that wrote the entry, as DOMAIN/PATH; ours is `proxy.dev/proxy`. Controllers remove entries that they no longer need.
   */
  controllerName: string
  /**
   * Accepted: the policy is valid (reason PartiallyValid: in part). Attached: it is in force on its targets.
   */
  conditions?: Conditions
}
/**
 * The object of a status entry.
 */
export interface ParentReference {
  /**
   * API group. Default: "gateway.networking.k8s.io".
   */
  group?: string
  /**
   * Kind. Default: "Gateway".
   */
  kind?: string
  /**
   * Namespace; default: that of the policy.
   */
  namespace?: string
  /**
   * Name.
   */
  name: string
  /**
   * Part of the object.
   */
  sectionName?: SectionName
  /**
   * Port of the object.
   */
  port?: number
}
/**
 * Policies for requests. Where several policies select a request they merge field by field, not deeply: Gateway < Listener < Route < Route rule; on one target the oldest policy wins.
 */
export interface Traffic {
  /**
   * When the policies run. PreRouting runs before a route is chosen, to influence that choice; its target must be a Gateway, a listener or a ListenerSet. The two phases are independent: policies merge within a phase only. Default: "PostRouting".
   */
  phase?: 'PreRouting' | 'PostRouting'
  authorization?: Authorization
  transformation?: Transformation
  extProc?: ExtProc
  extAuth?: ExtAuth
  jwtAuthentication?: JWTAuthentication
  basicAuthentication?: BasicAuthentication
  apiKeyAuthentication?: APIKeyAuthentication
  oidc?: OIDC
  cors?: CORS
  ipAllowList?: IPAllowList
  responseOverride?: ResponseOverride
  rateLimit?: RateLimits
  /**
   * Plugins, which run in this order within a phase.
   *
   * @minItems 1
   * @maxItems 16
   */
  plugins?: Plugin[]
  /**
   * Budgets of money, LLM tokens and requests. Those of all policies that apply to a request hold: no policy replaces the budgets of another one.
   *
   * @minItems 1
   * @maxItems 16
   */
  budgets?: Budget[]
  faultInjection?: FaultInjection
  requestBody?: RequestBody
  bandwidthLimit?: BandwidthLimit
  compression?: Compression
  decompression?: Decompression
  csrf?: CSRF
  headerModifiers?: HeaderModifiers
  hostRewrite?: HostnameRewrite
  timeouts?: Timeouts
  retry?: Retry
  cache?: HttpCache
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
   * Value. If it fails, or is neither string, bytes nor number, the header is removed, so that a client cannot inject its own; a pseudo header stays unchanged.
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
   * New body: strings and bytes unchanged, other values as JSON. If it fails, the body is empty. An expression that reads the old body makes the proxy buffer it, up to `frontend.http.maxBufferSize`.
   */
  body?: CELExpression
  /**
   * Values computed first and kept as `metadata.<key>` for later expressions, the response side and logs. An entry that fails is omitted.
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
  /**
   * Condition, evaluated once for each request. If it is false or reads an absent value, this does not apply to the request. If it fails otherwise, it applies.
   */
  when?: CELExpression
}
/**
 * External processing: a gRPC service (Envoy's `envoy.service.ext_proc.v3.ExternalProcessor`) sees, and may change, headers, bodies and trailers of request and response. If it fails, the request fails with 500 unless failureMode is FailOpen.
 */
export interface ExtProc {
  /**
   * The processor: a Service or a ProxyBackend.
   */
  backendRef: BackendObjectReference
  /**
   * Handling of a failure of the processor. FailClosed responds with 500; FailOpen continues without the processor, unless part of the request body was already sent to it. Later failures, and those of the response, always result in 500. Default: "FailClosed".
   */
  failureMode?: 'FailClosed' | 'FailOpen'
  /**
   * Timeout for the response of the processor to each message. Not set: the timeout of the request.
   */
  messageTimeout?: Duration
  processingOptions?: ExtProcProcessing
  /**
   * Condition, evaluated once for each request. If it is false, this does not apply to the request. If it fails, it applies: a client cannot evade it.
   */
  when?: CELExpression
}
/**
 * Parts of request and response that are sent to the processor.
 */
export interface ExtProcProcessing {
  /**
   * Whether to send the headers of the request to the processor. Default: "Send".
   */
  requestHeaderMode?: 'Send' | 'Skip'
  /**
   * How the request's body is sent to the processor. None: not at all. Buffered: as a whole, up to maxBufferSize; a longer one is an error. BufferedPartial: its beginning, up to maxBufferSize; the rest is forwarded unchanged. FullDuplexStreamed: in chunks; the processor returns the body in chunks. Default: "FullDuplexStreamed".
   */
  requestBodyMode?: 'None' | 'Buffered' | 'BufferedPartial' | 'FullDuplexStreamed'
  /**
   * Whether to send the trailers of the request; they are always sent with FullDuplexStreamed bodies to the processor. Default: "Send".
   */
  requestTrailerMode?: 'Send' | 'Skip'
  /**
   * Whether to send the headers of the response to the processor. Default: "Send".
   */
  responseHeaderMode?: 'Send' | 'Skip'
  /**
   * How the response's body is sent to the processor. None: not at all. Buffered: as a whole, up to maxBufferSize; a longer one is an error. BufferedPartial: its beginning, up to maxBufferSize; the rest is forwarded unchanged. FullDuplexStreamed: in chunks; the processor returns the body in chunks. Default: "FullDuplexStreamed".
   */
  responseBodyMode?: 'None' | 'Buffered' | 'BufferedPartial' | 'FullDuplexStreamed'
  /**
   * Whether to send the trailers of the response; they are always sent with FullDuplexStreamed bodies to the processor. Default: "Send".
   */
  responseTrailerMode?: 'Send' | 'Skip'
  /**
   * Whether the processor, in its responses to headers, may override the modes of bodies and trailers that follow. Default: false.
   */
  allowModeOverride?: boolean
}
/**
 * External authorization: a service decides about each request before it is forwarded. Exactly one of grpc, http. If the service cannot be reached or the reference does not resolve, the request is rejected with 403 unless failureMode is FailOpen.
 */
export interface ExtAuth {
  /**
   * The authorization server: a Service or a ProxyBackend.
   */
  backendRef: BackendObjectReference
  grpc?: AgentExtAuthGRPC
  http?: AgentExtAuthHTTP
  forwardBody?: ExtAuthBody
  /**
   * Handling of requests without a decision of the service. FailClosed rejects them with 403, FailOpen forwards them. Default: "FailClosed".
   */
  failureMode?: 'FailClosed' | 'FailOpen'
  /**
   * Condition, evaluated once for each request. If it is false, this does not apply to the request. If it fails, it applies: a client cannot evade it.
   */
  when?: CELExpression
}
/**
 * Calls the service by gRPC, with Envoy's protocol (`envoy.service.auth.v3.Authorization/Check`).
 */
export interface AgentExtAuthGRPC {
  /**
   * Fixed values sent as `context_extensions`.
   */
  contextExtensions?: {
    [k: string]: string
  }
  /**
   * Computed values sent as filter metadata of `metadata_context`; each must be a map, and one that fails is omitted. If this is not set and a JWT was verified, its claims are sent under `envoy.filters.http.jwt_authn`.
   */
  requestMetadata?: {
    [k: string]: CELExpression
  }
}
/**
 * Calls the service by HTTP, with the method of the request. Status 200 allows the request; any other response denies it, and its status, headers and body are sent to the client. The call times out after 2 s.
 */
export interface AgentExtAuthHTTP {
  /**
   * Path of the call; default: path and query of the request. If it fails, the request is rejected with 403.
   */
  path?: CELExpression
  /**
   * Location to redirect the client to (302) if the server responds with 401 or 403, for example a sign-in page.
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
   * Headers of the response of the server to copy to the request for the backend. They replace those of the client.
   *
   * @maxItems 64
   *
   * Items: Header name.
   */
  allowedResponseHeaders?: ShortString[]
  /**
   * Values computed from `request` and the server's `response`, kept as `extauthz.<key>` for later expressions; an entry that fails is omitted.
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
   * Maximum body size in bytes. A request with a larger one is rejected with 413 and the server is not called.
   */
  maxSize: number
}
/**
 * A plugin: Hono middleware in TypeScript or JavaScript that runs in the request path, by default in a worker thread of its own. See the guide on plugins. The worker thread isolates faults; it is no boundary against hostile code.
 */
export interface Plugin {
  /**
   * Name, unique in the list; shown in logs and metrics.
   */
  name: string
  source: PluginSource
  /**
   * Passed to `setup` of the plugin, after it was validated against the `configSchema` of the plugin.
   */
  config?: {
    [k: string]: unknown
  }
  /**
   * Secrets that `setup` of the plugin receives. A new value loads a new version of the plugin.
   *
   * @minItems 1
   * @maxItems 16
   */
  secrets?: PluginSecret[]
  fetch?: PluginFetch
  /**
   * When the plugin runs. BeforeAuthorization: before all authentication and authorization. AfterAuthorization: after them, and before rate limits. BeforeBackend: after all policies that change the request. Default: "AfterAuthorization".
   */
  phase?: 'BeforeAuthorization' | 'AfterAuthorization' | 'BeforeBackend'
  /**
   * Bodies that the plugin can read and replace. None: neither. Buffered: those of request and response, up to maxBufferSize; a longer one is a failure. Streamed: both in chunks, as they arrive, of any length. Default: "None".
   */
  body?: 'None' | 'Buffered' | 'Streamed'
  limits?: PluginLimits
  /**
   * Where the plugin runs. Worker: in a worker thread. Process: in a process of its own with the permission model of Node, which denies files, network, processes and threads; needs Node 26.3, which the image has. InProcess: in the thread that handles the request, where a call costs microseconds and nothing isolates faults; only for trusted plugins, and only if ProxyParameters set `plugins.inProcess`. Default: "Worker".
   */
  isolation?: 'Worker' | 'Process' | 'InProcess'
  /**
   * Where the values of `kv` are. Memory: in each replica. Redis: in the server of `config.redis`, shared by all replicas, Gateways and clusters that use this server and have a policy of the same namespace and name; `kv` rejects while it cannot be used. Default: "Memory".
   */
  kv?: 'Memory' | 'Redis'
  /**
   * Handling of a failure of the plugin: an error, a timeout, or a plugin that cannot be loaded. FailClosed responds with 500, or 504 for a timeout. FailOpen continues without the plugin. Default: "FailClosed".
   */
  failureMode?: 'FailClosed' | 'FailOpen'
  /**
   * Condition, evaluated once for each request. If it is false, this does not apply to the request. If it fails, it applies: a client cannot evade it.
   */
  when?: CELExpression
}
/**
 * Where the source of a plugin is.
 */
export interface PluginSource {
  /**
   * A key of a ConfigMap, with one module. It can import `@proxy/plugin` and some modules of Node; other packages must be bundled into it.
   */
  configMapRef?: PluginConfigMapReference
  /**
   * A container image or OCI artifact with the module, as `registry/repository@sha256:digest`. The operator fetches it from the registry. Only if ProxyParameters list it in `plugins.images`.
   */
  image?: string
  /**
   * Path of the module in the image, such as `plugins/index.ts`. Links are not followed.
   */
  path?: string
  /**
   * Path of the module, relative to the config file (`-f`). Not for policies in a cluster.
   */
  file?: string
}
/**
 * A key of a ConfigMap. If it is missing, or in another namespace without a ReferenceGrant, the plugin fails.
 */
export interface PluginConfigMapReference {
  /**
   * Name of the ConfigMap.
   */
  name: string
  /**
   * Namespace of the ConfigMap; default: that of the policy. Another one needs a ReferenceGrant there, from ProxyPolicies (`group: proxy.dev`) of the namespace of the policy to ConfigMaps.
   */
  namespace?: string
  /**
   * Key.
   */
  key: string
}
/**
 * Network access of the plugin by `fetch` of `setup`. Without it, every call of `fetch` fails.
 */
export interface PluginFetch {
  /**
   * Hosts that the plugin can call.
   *
   * @minItems 1
   * @maxItems 32
   *
   * Items: `host`, for the default ports of http and https, or `host:port`.
   */
  hosts: string[]
}
/**
 * A secret of a plugin.
 */
export interface PluginSecret {
  /**
   * Name in `secrets` of `setup`.
   */
  name: string
  /**
   * Where the value is. If it is missing, the plugin fails.
   */
  secretRef: SecretKeyReference
}
/**
 * A key of a Secret in the namespace of the referring object.
 */
export interface SecretKeyReference {
  /**
   * Name of the Secret.
   */
  name: string
  /**
   * Key.
   */
  key: string
}
/**
 * Limits of a plugin. A plugin that exceeds them does not affect other routes.
 */
export interface PluginLimits {
  /**
   * Time that the plugin may take before it calls `next()`, and again after it. InProcess: a plugin that blocks the thread is not stopped. Default: 1s.
   */
  timeout?: Duration
  /**
   * Memory of the worker thread, from 16Mi; it is replaced when it exceeds the limit. Not used by InProcess. Default: "64Mi".
   */
  memory?: string
}
/**
 * A key of a ConfigMap in the namespace of the referring object. If it is missing, features that need it reject all requests.
 */
export interface ConfigMapKeyReference {
  /**
   * Name of the ConfigMap.
   */
  name: string
  /**
   * Key.
   */
  key: string
}
/**
 * A budget of money, LLM tokens or requests for each value of a key. `scope` and `store` say whether it holds for each replica or for several together. What was spent is kept over changes of the policy.
 */
export interface Budget {
  /**
   * Name, unique in the list; shown to clients that exceed the budget, in logs and metrics.
   */
  name: string
  /**
   * Name of another budget of the list. A request that is charged to this budget is charged to the parent too.
   */
  parent?: string
  /**
   * One budget for each value of this expression, as a string; for example `apiKey.metadata.team`. Use a value that clients cannot choose. Default: one budget for all requests. At most 10,000 keys are counted at once; beyond it the key that was unused for the longest time gets a new budget.
   */
  key?: CELExpression
  /**
   * Handling of requests for which `key` fails or is null. Reject: 403. Ignore: the request is not charged. Default: "Reject".
   */
  onMissingKey?: 'Reject' | 'Ignore'
  /**
   * Limits. All must admit the request. Of limits with the same unit and window, the lowest holds.
   *
   * @minItems 1
   * @maxItems 8
   */
  limits: BudgetLimit[]
  /**
   * Restricts the budget to LLM requests for which this expression is true; for example `llm.requestModel.startsWith("gpt")`. One that fails is true. Default: all requests.
   */
  models?: CELExpression
  /**
   * Handling of requests that exceed the budget. `Reject` (default): 429. `Audit`: the request is admitted; metrics and logs report it. `{model: small}`: LLM requests use this model instead, others are admitted.
   */
  onExceeded?: unknown
  /**
   * Percentages of a limit at which a warning is logged and counted, once per window.
   *
   * @minItems 1
   * @maxItems 8
   *
   * Items: Percentage.
   */
  alertAt?: number[]
  /**
   * Handling of LLM requests under a usd limit whose model has no price. Reject: 403. Allow: the request costs nothing. Default: "Reject".
   */
  unpriced?: 'Reject' | 'Allow'
  /**
   * Time zone of calendar windows, by its IANA name; for example `Europe/Berlin`. Default: "UTC".
   */
  timeZone?: string
  /**
   * Replica: each replica of the Gateway has the full budget, lost when it restarts. Gateway: the budget holds for all replicas together; they get shares of it from the operator, by demand. Default: "Replica".
   */
  scope?: 'Replica' | 'Gateway'
  /**
   * Redis: the counters are in the Redis server of `config.redis`. Postgres: in the PostgreSQL database of `config.postgres`. The budget holds for all replicas, Gateways and clusters that use this server and have a policy of the same namespace and name. `scope` is ignored. Default: where `scope` says.
   */
  store?: 'Redis' | 'Postgres'
  /**
   * Handling of requests of a replica that gets no share from the operator, once its last one is used up or has expired (30 s), that gets no response from Redis or PostgreSQL in time, or that has no assignment of `quotaService` in force. Reject: 503. Allow: as with scope Replica, until it gets a share, a response or an assignment again. Default: "Reject".
   */
  onDisconnect?: 'Reject' | 'Allow'
  quotaService?: BudgetQuotaService
  /**
   * Whether responses have the header x-budget-remaining-usd. Default: false.
   */
  exposeRemaining?: boolean
}
/**
 * A rate limit quota service (`envoy.service.rate_limit_quota.v3`) that assigns what each replica may admit, in place of the operator. The assignment replaces the budget's limit, which holds only with `onDisconnect: Allow` while no assignment is in force. `scope` is ignored.
 */
export interface BudgetQuotaService {
  /**
   * The service: a Service or a ProxyBackend.
   */
  backendRef: BackendObjectReference
  /**
   * Domain that reports name.
   */
  domain: string
  /**
   * The bucket id, to which the value of `key` is added. Default: `policy`, the namespace and name of the policy as `<namespace>/<name>`, and `budget`, the name of the budget.
   */
  bucket?: {
    /**
     * Value.
     */
    [k: string]: string
  }
  /**
   * Name in the bucket id of the value of `key`. Values longer than 256 characters are replaced by a digest; an empty one is left out. Default: "key".
   */
  keyName?: string
  /**
   * Time between reports. At least 100ms. Default: "1s".
   */
  reportingInterval?: Duration
}
/**
 * One limit: exactly one of usd, tokens, requests, for each window.
 */
export interface BudgetLimit {
  /**
   * US dollars, as a decimal number; for example `500` or `0.25`. The price is that of the model.
   */
  usd?: string
  /**
   * LLM tokens, input and output.
   */
  tokens?: number
  /**
   * Requests.
   */
  requests?: number
  /**
   * Hour, Day, Week or Month: a calendar window; weeks begin on Monday. Or a duration from 1s, such as `1m` or `24h`: a rolling window, in which the part of the previous window that is still within reach counts proportionally.
   */
  window: string
}
/**
 * Rate limits. A request over a limit is rejected with 429. `local` and `global` merge separately with those of other policies.
 */
export interface RateLimits {
  /**
   * Limits counted in this replica only, without any call. All entries must admit the request; each entry has one budget for all traffic of its target, or one for each value of `key`.
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
   * LLM tokens (input and output) per unit. They are charged when the response has ended, so the request that exceeds the budget succeeds and later ones are rejected with 429. Other traffic is not limited.
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
  /**
   * One budget for each value of this expression, as a string; for example `jwt.sub`. With `mcp.tool` in it, calls of MCP tools are counted and nothing else. Requests for which it fails or is null share one budget. At most 10,000 keys of an entry are counted at once; beyond it the key that was unused for the longest time gets a new budget.
   */
  key?: CELExpression
  /**
   * Condition, evaluated once for each request. If it is false, this does not apply to the request. If it fails, it applies: a client cannot evade it.
   */
  when?: CELExpression
}
/**
 * Limits kept by an external rate limit service (Envoy's `envoy.service.ratelimit.v3.RateLimitService`), shared by all replicas. If the service cannot be reached, requests fail with 500 unless failureMode is FailOpen.
 */
export interface GlobalRateLimit {
  /**
   * The rate limit service: a Service or a ProxyBackend.
   */
  backendRef: BackendObjectReference
  /**
   * Domain of the counters: distinguishes the applications that use one rate limit service.
   */
  domain: ShortString
  /**
   * Counters. The service applies the limits of all of them.
   *
   * @minItems 1
   * @maxItems 16
   */
  descriptors: RateLimitDescriptor[]
  /**
   * Handling of requests if the service cannot be reached. FailClosed fails them with 500, FailOpen forwards them. Default: "FailClosed".
   */
  failureMode?: 'FailClosed' | 'FailOpen'
  /**
   * Condition, evaluated once for each request. If it is false, this does not apply to the request. If it fails, it applies: a client cannot evade it.
   */
  when?: CELExpression
}
/**
 * One counter of the rate limit service.
 */
export interface RateLimitDescriptor {
  /**
   * Key and value pairs that name the counter. If one fails, the descriptor is omitted; without descriptors, the service is not called.
   *
   * @minItems 1
   * @maxItems 16
   */
  entries: RateLimitDescriptorEntry[]
  /**
   * Cost of a request: 1, or the LLM tokens that it used, charged when the response has ended. Default: "Requests".
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
   * Value, as a string; for example `source.address` for one counter per client address. With `mcp.tool` in it, calls of MCP tools are counted and nothing else.
   */
  expression: CELExpression
}
/**
 * Cross-origin resource sharing (Gateway API HTTPCORSFilter). Responds to preflight requests with 200, before authentication; adds CORS headers to responses for allowed origins. A CORS filter in the route replaces this.
 */
export interface CORS {
  /**
   * Origins whose scripts may read responses. `Access-Control-Allow-Origin` echoes the origin of the request.
   *
   * @maxItems 64
   *
   * Items: `*`, or `scheme://host[:port]` with scheme http or https; the host may start with `*.` or be `*`.
   */
  allowOrigins?: string[]
  /**
   * Sends `Access-Control-Allow-Credentials: true`, so that browsers attach cookies and authorization.
   */
  allowCredentials?: boolean
  /**
   * Methods listed in preflight responses.
   *
   * @maxItems 9
   *
   * Items: Method, or `*`.
   */
  allowMethods?: ('GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE' | 'CONNECT' | 'OPTIONS' | 'TRACE' | 'PATCH' | '*')[]
  /**
   * Request headers listed in preflight responses.
   *
   * @maxItems 64
   *
   * Items: Header name, or `*`.
   */
  allowHeaders?: string[]
  /**
   * Response headers that scripts may read.
   *
   * @maxItems 64
   *
   * Items: Header name, or `*`.
   */
  exposeHeaders?: string[]
  /**
   * Seconds for which a browser may cache a preflight response. Default: 5.
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
 * Accepts or rejects requests by the address of the client: that of the connection, or the one that `frontend.proxyProtocol` or `frontend.http.clientIP` finds. Rejected requests get a 403 response.
 */
export interface IPAllowList {
  /**
   * Addresses of clients that are accepted. Not set: all.
   *
   * @minItems 1
   * @maxItems 256
   */
  allow?: CIDR[]
  /**
   * Addresses of clients that are rejected, even if `allow` contains them.
   *
   * @minItems 1
   * @maxItems 256
   */
  deny?: CIDR[]
}
/**
 * Limits the body of requests, in the form that the client sent. A longer one gets 413 before the upstream is called: a body of unknown length is read first. Bodies of gRPC requests are not read first, and upgrades are not limited.
 */
export interface RequestBody {
  /**
   * Most bytes of a body.
   */
  maxSize: number
}
/**
 * Limits the bytes per second of bodies, in each worker of a replica. A body above the limit is delivered later, with back-pressure to its sender.
 */
export interface BandwidthLimit {
  /**
   * Limit of bodies of requests.
   */
  request?: Bandwidth
  /**
   * Limit of bodies of responses.
   */
  response?: Bandwidth
  /**
   * Target: all requests to which the policy applies on one of its targets share the limit. Request: each request has its own. Default: "Target".
   */
  scope?: 'Target' | 'Request'
}
/**
 * A rate.
 */
export interface Bandwidth {
  /**
   * Bytes per second.
   */
  bytesPerSecond: number
}
/**
 * Compresses responses for clients that accept it. Responses that have a `content-encoding`, partial ones, and those with `cache-control: no-transform` stay as they are, and so does gRPC.
 */
export interface Compression {
  /**
   * Content codings, in the order of preference between those that the client prefers equally. Default: zstd, br, gzip.
   *
   * @minItems 1
   * @maxItems 3
   *
   * Items: A content coding.
   */
  algorithms?: ('zstd' | 'br' | 'gzip')[]
  /**
   * Types of responses that are compressed. Default: HTML, CSS, JavaScript, JSON, XML, SVG and plain text.
   *
   * @minItems 1
   * @maxItems 50
   *
   * Items: Media type without parameters, or `type/*`. `text/event-stream` is only selected by its full name.
   */
  contentTypes?: string[]
  /**
   * Bytes of the shortest body that is compressed; a body of unknown length always is. Default: 1024.
   */
  minContentLength?: number
}
/**
 * Decompresses bodies of requests (gzip, br, zstd, deflate) for upstreams that do not. An unknown `content-encoding` gets 415, content that does not match it 400.
 */
export interface Decompression {
  /**
   * Most bytes of a decompressed body; a longer one gets 413. Default: 10 MiB.
   */
  maxSize?: number
}
/**
 * Replaces responses: those of the upstream, and those of the gateway itself. With `phase: PreRouting` also responses to requests that match no route. Responses to gRPC requests and to upgrades stay as they are.
 */
export interface ResponseOverride {
  /**
   * Rules; the first one that matches applies.
   *
   * @minItems 1
   * @maxItems 16
   */
  rules: ResponseOverrideRule[]
}
/**
 * A replacement, and the responses that it applies to.
 */
export interface ResponseOverrideRule {
  match: ResponseMatch
  response?: ReplacedResponse
  redirect?: ResponseRedirect
}
/**
 * Conditions, which must all hold.
 */
export interface ResponseMatch {
  /**
   * Status codes, of which one must match.
   *
   * @minItems 1
   * @maxItems 50
   *
   * Items: A status code, or a range of them such as `500-599`.
   */
  statusCodes?: string[]
  /**
   * Headers of the response, which must all match.
   *
   * @minItems 1
   * @maxItems 16
   */
  headers?: ResponseHeaderMatch[]
  /**
   * Condition on `request` and the head of `response`. A failure counts as false.
   */
  condition?: CELExpression
}
/**
 * A header of the response.
 */
export interface ResponseHeaderMatch {
  /**
   * Name.
   */
  name: HTTPHeaderName
  /**
   * Exact value of one of its lines. Not set: the header is present.
   */
  value?: string
}
/**
 * What clients receive. Headers that describe the replaced content are removed, the others stay.
 */
export interface ReplacedResponse {
  /**
   * Status code. Default: that of the response.
   */
  status?: number
  /**
   * `content-type` of the body. Default: text/plain.
   */
  contentType?: string
  /**
   * Body. Default: none.
   */
  body?: string
  bodyRef?: ResponseBodyReference
  /**
   * Headers that are set.
   *
   * @minItems 1
   * @maxItems 16
   *
   * Items: A header.
   */
  headers?: {
    /**
     * Name.
     */
    name: HTTPHeaderName
    /**
     * Value.
     */
    value: string
  }[]
}
/**
 * A body in a ConfigMap in the namespace of the policy, of at most 256 KiB. If it is missing, the body is empty.
 */
export interface ResponseBodyReference {
  /**
   * Name of the ConfigMap.
   */
  name: string
  /**
   * Key of the ConfigMap.
   */
  key: string
}
/**
 * A redirect in place of the response.
 */
export interface ResponseRedirect {
  /**
   * Absolute URL with scheme http or https, or a path.
   */
  location: string
  /**
   * Status code. Default: 302.
   */
  status?: 301 | 302 | 303 | 307 | 308
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
 * Host header of requests to the backend. Without this policy: Auto for backends named by host, None for Services and IP addresses. Ignored if a URLRewrite filter of the route sets a host.
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
   * Number of retries after the first attempt; 0 turns retries off, and more than 254 count as 254. Bodies of up to 64 KiB are buffered for retries; requests with larger ones are not retried. Default: 1.
   */
  attempts?: number
  /**
   * Delay before each retry; default: none. The request timeout includes it.
   */
  backoff?: Duration
}
/**
 * Delays and aborts requests, to test how clients behave. Requests that authentication, authorization or a limit rejects have no faults. Delays and aborts are chosen independently; a request can have both. `proxy.fault` in the access log and `proxy_faults_injected_total` name them.
 */
export interface FaultInjection {
  delay?: FaultDelay
  abort?: FaultAbort
  /**
   * Condition. If it is not true or fails, the request has no faults.
   */
  when?: CELExpression
}
/**
 * A delay before the request is forwarded or aborted. It counts against `timeouts.request`.
 */
export interface FaultDelay {
  /**
   * Length of the delay, from 1ms to 1h.
   */
  duration: Duration
  /**
   * Percentage of requests. Default: 100.
   */
  percent?: number
  fraction?: FaultFraction
}
/**
 * A response of the gateway instead of that of the upstream, which is not called. It is not retried.
 */
export interface FaultAbort {
  /**
   * Status code. Default: 503.
   */
  status?: number
  /**
   * `grpc-status` of responses to gRPC requests. Default: the one that corresponds to `status`.
   */
  grpcStatus?: number
  /**
   * Percentage of requests. Default: 100.
   */
  percent?: number
  fraction?: FaultFraction
}
/**
 * A share of requests, such as 1 of 1000.
 */
export interface FaultFraction {
  /**
   * Numerator.
   */
  numerator: number
  /**
   * Denominator. Default: 100.
   */
  denominator?: number
}
/**
 * Stores responses to GET requests as a shared cache (RFC 9111), if the upstream says by `cache-control` or `expires` for how long. Not for backends of type ai, mcp or cloudBackend.
 */
export interface HttpCache {
  /**
   * Requests share responses only if this text is equal. Without a value, the request is not cached. Default: all requests share responses.
   */
  tenant?: CELExpression
  /**
   * Where responses are stored. Memory: in each worker. Redis: in the server of `config.redis` of the data plane, shared by replicas; without one, in memory. Default: Memory.
   */
  store?: 'Memory' | 'Redis'
}
/**
 * Responds to the request without forwarding it, after authentication, authorization and limits.
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
  /**
   * Body: strings and bytes unchanged, other values as JSON. If it fails, the response is 500.
   */
  bodyExpression?: CELExpression
  /**
   * Headers. Without `content-type` here, the response has none.
   *
   * @minItems 1
   * @maxItems 16
   */
  headers?: DirectResponseHeader[]
  keySet?: KeySetResponse
  /**
   * Condition, evaluated once for each request. If it is false or reads an absent value, this does not apply to the request. If it fails otherwise, it applies.
   */
  when?: CELExpression
}
/**
 * A header whose value is computed.
 */
export interface DirectResponseHeader {
  /**
   * Name. Headers that frame the message, such as `content-length`, are ignored.
   */
  name: HTTPHeaderName
  /**
   * Value. If it fails, or is neither string, bytes nor number, the header is omitted.
   */
  value: CELExpression
}
/**
 * Responds with the public keys of a Secret as a JSON Web Key Set, which clients may keep for 5 minutes: for the tokens of `backend.auth.jwtSign`.
 */
export interface KeySetResponse {
  /**
   * Secret with the entry `key`, and optionally `nextKey` and `previousKey`: private keys in PEM. If `key` is not usable: 500.
   */
  secretRef: SecretReference
}
/**
 * Authorization by CEL expressions. The rules of all policies that apply to a request, on any level, are evaluated together within a phase: a matching Deny rejects the request; every Require must match; if there are Allow rules, one of them must match. Denied requests are rejected with 403.
 */
export interface Authorization {
  policy: AuthorizationPolicy
  /**
   * Effect of a match. Allow and Deny match if any expression is true, Require if all are. An expression that fails counts as false. Default: "Allow".
   */
  action?: 'Allow' | 'Deny' | 'Require'
}
/**
 * Conditions.
 */
export interface AuthorizationPolicy {
  /**
   * Expressions of type boolean, for example `jwt.team == "sales"` or `request.method == "GET"`.
   *
   * @minItems 1
   * @maxItems 256
   */
  matchExpressions: CELExpression[]
}
/**
 * Validates tokens sent as `Authorization: Bearer`: JSON Web Tokens by the keys of their issuer, others by introspection. On success the token is removed from the request and its claims are usable as `jwt.<claim>`. Signature, `iss`, `aud` and `exp` (with 60 s leeway) are checked.
 */
export interface JWTAuthentication {
  /**
   * Strict: a valid token must be present, else 401. Optional: a token that is present must be valid; requests without one pass. Permissive: no request is rejected; claims of valid tokens are usable for later authorization and logging. Default: "Strict".
   */
  mode?: 'Strict' | 'Optional' | 'Permissive'
  /**
   * Accepted issuers. The `kid` of the token selects the provider; a token of no key set is introspected.
   *
   * @minItems 1
   * @maxItems 64
   */
  providers: JWTProvider[]
}
/**
 * One issuer of tokens: exactly one of jwks, introspection.
 */
export interface JWTProvider {
  /**
   * Required value of the `iss` claim. A response of the introspection endpoint may lack it.
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
  jwks?: JWKS
  introspection?: TokenIntrospection
}
/**
 * Asks the authorization server about each token (RFC 7662): for opaque tokens, and for JSON Web Tokens that can be revoked. The members of the response are usable as `jwt.<claim>`. If the server does not respond, requests with a token get 503.
 */
export interface TokenIntrospection {
  /**
   * The authorization server: a Service or a static ProxyBackend. Its `tls` policy applies.
   */
  backendRef: BackendObjectReference
  /**
   * Path, for example `/realms/demo/protocol/openid-connect/token/introspect`.
   */
  path: string
  /**
   * Secret with the entries `clientId` and `clientSecret`: the gateway at the authorization server.
   */
  secretRef: SecretReference
  /**
   * Where id and secret of the client are sent: in the Authorization header (default), or in the body.
   */
  clientAuthentication?: 'Basic' | 'Body'
  /**
   * Longest time that an active token is accepted without another call; never after its `exp`. 0s: each request makes a call. Default: 30s.
   */
  cacheDuration?: Duration
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
   * Secret whose entry `.htaccess` is a complete htpasswd file. If it is missing, all requests are rejected.
   */
  secretRef?: SecretReference
}
/**
 * API keys sent as `Authorization: Bearer`: exactly one of secretRef, secretSelector. Each Secret entry is one key; the name of the entry is arbitrary, its value is the key, or a JSON object with `key` or `keyHash` (`sha256:` and hex), and optionally `metadata` and `expires` (RFC 3339). On success the header is removed and the metadata is usable as `apiKey.<field>`.
 */
export interface APIKeyAuthentication {
  /**
   * Strict: a valid key must be present, else 401. Optional: a key that is present must be valid; requests without one pass. Permissive: no request is rejected. Default: "Strict".
   */
  mode?: 'Strict' | 'Optional' | 'Permissive'
  /**
   * Secret whose entries are API keys. If it is missing, all requests are rejected, unless mode is Permissive.
   */
  secretRef?: SecretReference
  /**
   * Selects several Secrets whose entries are API keys. The same key in several of them is undefined behavior. If none matches, all requests are rejected, unless mode is Permissive.
   */
  secretSelector?: SecretSelector
}
/**
 * Logs people in with OpenID Connect: authorization code flow with PKCE, sessions in encrypted cookies. The claims of the ID token are usable as `jwt.<claim>`. Navigations of browsers without a session are sent to the provider, all other requests get 401.
 */
export interface OIDC {
  /**
   * Issuer of the provider, byte for byte as in its tokens. Its discovery document is read through `backendRef`.
   */
  issuer: string
  /**
   * The provider: a Service or a static ProxyBackend. Its `tls` policy applies.
   */
  backendRef: BackendObjectReference
  /**
   * Endpoints of the provider that are not those of its discovery document. With authorization, token and keys none is read.
   */
  endpoints?: {
    /**
     * Where browsers are sent to log in.
     */
    authorization?: string
    /**
     * Token endpoint.
     */
    token?: OIDCEndpoint
    /**
     * JSON Web Key Set.
     */
    keys?: OIDCEndpoint
    /**
     * Where browsers are sent to log out.
     */
    endSession?: string
  }
  /**
   * Id of the gateway at the provider.
   */
  clientId: ShortString
  /**
   * Secret with the entry `clientSecret`. Default: a public client.
   */
  secretRef?: SecretReference
  /**
   * Where id and secret of the client are sent: in the Authorization header (default), or in the body.
   */
  clientAuthentication?: 'Basic' | 'Body'
  /**
   * Scopes to request beside `openid`. Most providers issue refresh tokens for `offline_access`.
   *
   * @minItems 1
   * @maxItems 32
   *
   * Items: Scope.
   */
  scopes?: string[]
  /**
   * More parameters of the authorization request, for example `prompt: select_account`.
   */
  parameters?: {
    [k: string]: LongString
  }
  /**
   * Scheme and host of the URLs that browsers use, for example `https://app.example.com`. Default: those of the request.
   */
  publicUrl?: string
  /**
   * Path that the provider returns to. The route must match it. Default: `/oauth2/callback`.
   */
  callbackPath?: string
  /**
   * Path that ends the session and then that at the provider. The route must match it. Default: `/oauth2/logout`.
   */
  logoutPath?: string
  /**
   * Path that the provider returns to after logout. Default: none is asked for.
   */
  afterLogoutPath?: string
  /**
   * Whether a request without a session may start a login; false: 401. Default: navigations of browsers, by `Sec-Fetch-Mode`, else GET with `Accept: text/html`.
   */
  login?: CELExpression
  /**
   * Claims of the ID token that a session keeps. Default: all. Choose some if the cookies become too large.
   *
   * @minItems 1
   * @maxItems 64
   *
   * Items: Name of a claim.
   */
  claims?: string[]
  /**
   * Longest time until the user logs in again. Default: 12h. At least 1m.
   */
  lifetime?: Duration
  /**
   * Attribute of the session cookies. Default: Lax.
   */
  sameSite?: 'Lax' | 'Strict' | 'None'
  /**
   * Domain that shares the session cookies. Default: the host alone.
   */
  cookieDomain?: string
  /**
   * Sends the access token to the backend as `Authorization: Bearer`. Default: false.
   */
  forwardAccessToken?: boolean
  /**
   * Header with the ID token for the backend. Default: none.
   */
  forwardIdToken?: HTTPHeaderName
}
/**
 * An endpoint that the gateway calls.
 */
export interface OIDCEndpoint {
  /**
   * The server: a Service or a static ProxyBackend. Default: that of the policy.
   */
  backendRef?: BackendObjectReference
  /**
   * Path, for example `/oauth2/v4/token`.
   */
  path: string
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
   * Authorization of connections, before a request is read and on TLS ports after the handshake; expressions see only `source`. A denied connection is closed. Rules of all levels apply together.
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
   * Timeout for the first bytes and the handshake; then the connection is closed. At least 100ms. Default: "15s".
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
   * Cipher suites accepted. Default: the AES-GCM suites of TLS 1.3 and of ECDHE with ECDSA and RSA. ChaCha20 is used only if listed.
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
   * Maximum size in bytes of a body that is buffered for policies that need a complete body. Each such policy documents how it handles a larger one. LLM backends read up to 32 MiB if this has its default. Default: 2097152.
   */
  maxBufferSize?: number
  /**
   * Levels of arrays and objects in JSON that clients and upstreams send: bodies of LLM and MCP requests, and `json()` in expressions. A request with more gets 400; an expression fails. Default: 512.
   */
  maxJsonDepth?: number
  /**
   * Members of all objects and elements of all arrays of such JSON, in total. A request with more gets 400; an expression fails. Default: 100000.
   */
  maxJsonMembers?: number
  /**
   * Maximum number of bytes of bodies that a data plane buffers at once, of all requests and responses together. A request whose body would exceed it gets 503 with `retry-after`. Default: a quarter of the memory limit of the container, or of the memory of the machine without one; in small containers half of what is beyond 192 MiB, at least 16 MiB.
   */
  maxHeldBytes?: number
  /**
   * Maximum number of headers of an HTTP/1 request; a request with more is rejected with 431. Default: 100.
   */
  http1MaxHeaders?: number
  /**
   * Time after which an idle HTTP/1 connection is closed; also the timeout for a request head. At least 1s. Default: "10m".
   */
  http1IdleTimeout?: Duration
  /**
   * Initial flow-control window of a stream in bytes. Default: 256 KiB.
   */
  http2WindowSize?: number
  /**
   * Initial flow-control window of a connection in bytes. Default: 1 MiB.
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
   * Timeout for the reply to a ping, after which the connection is closed; only with http2KeepaliveInterval. Default: 20s. At least 1s.
   */
  http2KeepaliveTimeout?: Duration
  /**
   * Default (also if the field is not set): before routes and policies see a path, dot segments are resolved, empty segments are removed and percent-encoded unreserved characters are decoded; the path is forwarded in this form. `%2F` and `%5C` are not decoded. "Off", in quotes: paths are used and forwarded as received.
   */
  pathNormalization?: 'Default' | 'Off'
  /**
   * Handling of request headers and trailers with underscores in their names. Allow (default): they are forwarded, unless a policy set or removed the same name with dashes, because CGI and WSGI servers do not distinguish the two. Drop: they are removed. Reject: the request gets 400. gRPC metadata often has underscores.
   */
  headersWithUnderscores?: 'Allow' | 'Drop' | 'Reject'
  /**
   * Age at which a connection is closed gracefully (GOAWAY, or `connection: close`); requests in flight finish. Not set: no limit. At least 1s.
   */
  maxConnectionDuration?: Duration
  clientIP?: ClientIP
  xForwardedClientCert?: XForwardedClientCert
}
/**
 * Takes the address of the client from a header that trusted proxies in front of the gateway set, for expressions, logs, `ipAllowList`, limits and load balancing. `X-Forwarded-*`, `Forwarded` and `x-request-id` are accepted from trusted proxies only, whether or not they name the client.
 */
export interface ClientIP {
  /**
   * Header with the address: `X-Forwarded-For`, `Forwarded` (RFC 7239), or another one with a single address. Default: "X-Forwarded-For".
   */
  header?: string
  /**
   * Number of proxies in front of the gateway: the client is the entry of that number, counted from the right. With fewer entries it is the peer. Every peer is trusted: only the proxies may be able to connect.
   */
  trustedHops?: number
  /**
   * Addresses of the proxies: the client is the first entry from the right that is not one of them. A peer that is not one of them is the client itself.
   *
   * @minItems 1
   * @maxItems 64
   */
  trustedCIDRs?: CIDR[]
  /**
   * If a trusted peer sends no usable address: FailClosed rejects the request with 403, FailOpen takes the address of the peer. Default: "FailClosed".
   */
  failureMode?: 'FailClosed' | 'FailOpen'
}
/**
 * The header `x-forwarded-client-cert` of requests on connections with a verified client certificate. Elsewhere it is always removed.
 */
export interface XForwardedClientCert {
  /**
   * Sanitize removes the header, AppendForward adds an element for the certificate of the connection to that of the client, SanitizeSet replaces it. Default: "Sanitize".
   */
  mode?: 'Sanitize' | 'AppendForward' | 'SanitizeSet'
  /**
   * Fields besides `Hash`, the SHA-256 digest of the certificate. Cert and Chain are URL-encoded PEM.
   *
   * @minItems 1
   * @maxItems 5
   *
   * Items: A field of the element.
   */
  certDetailsToAdd?: ('Subject' | 'Cert' | 'Chain' | 'DNS' | 'URI')[]
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
   * Only requests for which this is true are logged; a failure counts as false. Default: all.
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
  backendRef: BackendObjectReference
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
  backendRef: BackendObjectReference
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
   * Whether a request without a trace starts one: a boolean, or a probability from 0.0 to 1.0. A failure counts as false. Not set: never.
   */
  randomSampling?: CELExpression
  /**
   * Whether a request that is part of a trace gets a span: a boolean, or a probability. A failure counts as false. Not set: always.
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
   * Value; the attribute is omitted if this fails.
   */
  expression: CELExpression
}
/**
 * Changes to the attributes that are recorded by default.
 */
export interface LogTracingAttributes {
  /**
   * Default attributes to omit, for example `http.method`.
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
   * Value; the attribute is omitted if this fails or is null.
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
   * Changes to requests to this backend and to its responses.
   */
  transformation?: Transformation
  auth?: BackendAuth
  health?: Health
  loadBalancer?: LoadBalancer
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
   * Changes to requests to this backend and to its responses.
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
   * Changes to requests to this backend and to its responses.
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
   * Changes to requests to this backend and to its responses.
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
   * Timeout for establishing a connection; then the attempt fails with 504. Default: 10s. At least 100ms.
   */
  connectTimeout?: Duration
}
/**
 * HTTP settings of requests to the backend.
 */
export interface BackendHTTP {
  /**
   * HTTP version. Default: that of appProtocol of the Service port; HTTP2 for gRPC; the version of the client for plaintext requests; HTTP1 for requests over TLS.
   */
  version?: 'HTTP1' | 'HTTP2'
  /**
   * Time for one attempt until the response head, or until the first content of a streamed response of an LLM; then it fails with 504 and may be retried. At least 1ms.
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
  backendRef: BackendObjectReference
}
/**
 * TLS to the backend. Without fields, the certificate is verified against the system CAs and SNI is taken from the destination.
 */
export interface BackendTLS {
  /**
   * Client certificate: a Secret with `tls.key` and `tls.crt`. A `ca.cert` in it verifies the server, unless caCertificateRefs is set. If the Secret is missing, connections fail.
   *
   * @maxItems 1
   */
  mtlsCertificateRef?: SecretReference[]
  /**
   * CA certificates that verify the server; default: those of the system. If missing, connections fail.
   *
   * @maxItems 1
   */
  caCertificateRefs?: ConfigMapReference[]
  /**
   * All disables verification of the certificate. Hostname verifies its chain but not its names.
   */
  insecureSkipVerify?: 'All' | 'Hostname'
  /**
   * Server name sent, and verified unless verifySubjectAltNames is set. Default: host name of the destination.
   */
  sni?: SNI
  /**
   * Names; the certificate must have one of them. Default: host name of the destination.
   *
   * @minItems 1
   * @maxItems 16
   *
   * Items: Subject alternative name.
   */
  verifySubjectAltNames?: ShortString[]
  /**
   * ALPN protocols offered. Default: h2 and http/1.1, narrowed to the HTTP version if that is set.
   *
   * @minItems 1
   * @maxItems 16
   *
   * Items: Protocol name.
   */
  alpnProtocols?: TinyString[]
}
/**
 * Credentials for the backend: one of key, secretRef, passthrough, aws, azure, gcp, oauth, jwtSign. If they are not available: 500.
 */
export interface BackendAuth {
  /**
   * Value sent as `Authorization: Bearer`. Not recommended: everyone who may read this object can read it; prefer secretRef.
   */
  key?: string
  /**
   * Secret whose entry `Authorization` is sent as `Authorization: Bearer`; white space around it and one leading `Bearer ` are removed.
   */
  secretRef?: SecretReference
  /**
   * Forwards the credential that a client authentication policy (JWT, API key) verified and removed. No effect without such a policy.
   */
  passthrough?: {}
  aws?: CloudAAuth
  /**
   * Neutral name of aws.
   */
  cloudA?: CloudAAuth
  azure?: CloudBAuth
  /**
   * Neutral name of azure.
   */
  cloudB?: CloudBAuth
  gcp?: CloudCAuth
  /**
   * Neutral name of gcp.
   */
  cloudC?: CloudCAuth
  oauth?: OAuthCredentials
  jwtSign?: JWTSign
}
/**
 * Short-lived JSON Web Tokens that the gateway signs for the backend, sent as `Authorization: Bearer`, with `iss`, `aud`, `iat`, `nbf` and `exp`. `traffic.directResponse.keySet` publishes the keys that verify them. Equal claims get the same token until half of its lifetime.
 */
export interface JWTSign {
  /**
   * Claim `iss`: what the backend knows this gateway as.
   */
  issuer: LongString
  /**
   * Claim `aud`: the backend.
   *
   * @minItems 1
   * @maxItems 16
   */
  audiences: LongString[]
  /**
   * Secret whose entry `key` signs: a private key in PEM, EC (P-256, P-384, P-521), Ed25519, or RSA of at least 2048 bits. The `kid` is the thumbprint of its public key (RFC 7638). Entries `nextKey` and `previousKey` are only published.
   */
  secretRef: SecretReference
  /**
   * More claims by name, such as `sub: jwt.sub`. Null omits the claim; a failure rejects the request with 401.
   */
  claims?: {
    [k: string]: CELExpression
  }
  /**
   * Time between `iat` and `exp`. At most 1h. Default: 5m. At least 10s.
   */
  lifetime?: Duration
}
/**
 * Access tokens of an OAuth authorization server, sent as `Authorization: Bearer`: one for each user with TokenExchange and JWTBearer, one for all with ClientCredentials. They are cached until shortly before they expire. Requests without an accepted token fail with 401; if the token endpoint fails, with 502.
 */
export interface OAuthCredentials {
  /**
   * TokenExchange (RFC 8693): the token of the request is exchanged. JWTBearer (RFC 7523): it is the assertion. ClientCredentials (RFC 6749 section 4.4): a token of the gateway.
   */
  grantType: 'TokenExchange' | 'JWTBearer' | 'ClientCredentials'
  /**
   * Token endpoint of the authorization server.
   */
  tokenEndpoint: {
    /**
     * The server: a Service or a static ProxyBackend. Its `tls` policy applies.
     */
    backendRef: BackendObjectReference
    /**
     * Path, for example `/realms/demo/protocol/openid-connect/token`.
     */
    path: string
  }
  /**
   * Secret with entries `clientId` and `clientSecret`. Required with ClientCredentials; default: no client authentication.
   */
  secretRef?: SecretReference
  /**
   * Where id and secret of the client are sent: in the Authorization header (default), or in the body.
   */
  clientAuthentication?: 'Basic' | 'Body'
  /**
   * The token of the request. Default: the one that a JWT policy or `mcp.authentication` verified, else the bearer token of the Authorization header.
   */
  subjectToken?: CELExpression
  /**
   * Type of the token of the request; only with TokenExchange. Default: AccessToken.
   */
  subjectTokenType?: 'AccessToken' | 'IDToken' | 'JWT'
  /**
   * Scopes to request.
   *
   * @minItems 1
   * @maxItems 32
   *
   * Items: Scope.
   */
  scopes?: string[]
  /**
   * Values of the parameter `audience`.
   *
   * @minItems 1
   * @maxItems 16
   */
  audiences?: LongString[]
  /**
   * Values of the parameter `resource` (RFC 8707): URIs.
   *
   * @minItems 1
   * @maxItems 16
   */
  resources?: LongString[]
  /**
   * More parameters of the request, for example `requested_token_use: on_behalf_of` of Microsoft Entra ID.
   */
  parameters?: {
    [k: string]: LongString
  }
}
/**
 * AWS: requests are signed (Signature Version 4).
 */
export interface CloudAAuth {
  /**
   * Secret with entries `accessKey`, `secretKey` and optionally `sessionToken`. Not set: the default credential chain: environment, web identity, container and instance metadata.
   */
  secretRef?: SecretReference
}
/**
 * Microsoft Azure: an access token of Microsoft Entra ID; exactly one of secretRef, managedIdentity.
 */
export interface CloudBAuth {
  /**
   * Secret with entries `clientId`, `tenantId` and `clientSecret`.
   */
  secretRef?: SecretReference
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
 * Google Cloud: a token of the workload (application default credentials).
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
 * Health of endpoints: outlier detection by responses, and checks by requests of the gateway. Not set: none.
 */
export interface Health {
  /**
   * If true, the response is unhealthy, for example `response.code >= 500`. Default: a 5xx, a grpc-status other than 0, or no response. Without `eviction`, unhealthy responses only lower the score.
   */
  unhealthyCondition?: CELExpression
  eviction?: BackendEviction
  active?: HealthCheck
}
/**
 * Conditions and duration of the eviction of an endpoint. One threshold suffices; without any, one unhealthy response evicts. If all endpoints are evicted, all are used.
 */
export interface BackendEviction {
  /**
   * Base time of an eviction; multiplied by the number of consecutive evictions. At least 1s. Default: "3s".
   */
  duration?: Duration
  /**
   * Health score after the eviction. Not set: the score before it.
   */
  restoreHealth?: number
  /**
   * Number of consecutive unhealthy responses that evict; only a healthy response resets the count.
   */
  consecutiveFailures?: number
  /**
   * An unhealthy response evicts if the health score was already below this value.
   */
  healthThreshold?: number
  /**
   * Evicts an endpoint with too large a share of unhealthy responses.
   */
  failurePercentage?: {
    /**
     * Percent of the responses of an interval that must be unhealthy.
     */
    threshold: number
    /**
     * Time after which counting begins anew. At least 1s. Default: "10s".
     */
    interval?: Duration
    /**
     * Responses that an interval must have. Default: 50.
     */
    minRequests?: number
  }
  /**
   * Percent of the endpoints that may be out until none is evicted any more; one always may be. Default: all.
   */
  maxEvictedPercent?: number
}
/**
 * Checks of each endpoint by the gateway. One that fails them gets no requests, unless all are out.
 */
export interface HealthCheck {
  /**
   * Time between two checks. At least 1s. Default: "3s".
   */
  interval?: Duration
  /**
   * Most random time added to an interval. Default: a tenth of it.
   */
  jitter?: Duration
  /**
   * Time for a check. At least 1ms. Default: "1s".
   */
  timeout?: Duration
  /**
   * Failures in a row that take it out. Default: 3.
   */
  unhealthyThreshold?: number
  /**
   * Passes in a row that take it in. Default: 1.
   */
  healthyThreshold?: number
  /**
   * A GET request.
   */
  http?: {
    /**
     * Path and query.
     */
    path: string
    /**
     * Host. Default: that of the backend.
     */
    hostname?: string
    /**
     * Default: 200.
     *
     * @minItems 1
     * @maxItems 100
     *
     * Items: Status code.
     */
    expectedStatuses?: number[]
    /**
     * Text that the body contains.
     */
    expectedBody?: string
  }
  /**
   * A connection.
   */
  tcp?: {}
  /**
   * gRPC health v1.
   */
  grpc?: {
    /**
     * Service. Default: the server.
     */
    service?: string
  }
}
/**
 * Selects an endpoint of the backend for each request, of the nearest that are not evicted.
 */
export interface LoadBalancer {
  /**
   * LeastRequest: of two random endpoints the one with better health, latency and load. RoundRobin: one after the other, in each worker. ConsistentHash: the same one for each key. ModelServer: the LLM server that responds first, by cached prefixes, tokens to read and its metrics; for Services and InferencePools, whose endpointPickerRef it replaces. Default of an InferencePool without endpointPickerRef. Default: "LeastRequest".
   */
  type?: 'LeastRequest' | 'RoundRobin' | 'Random' | 'ConsistentHash' | 'ModelServer'
  consistentHash?: ConsistentHash
  modelServer?: ModelServer
  /**
   * New endpoints receive few requests at first.
   */
  slowStart?: {
    /**
     * Time in which the share of a new endpoint grows from 10 % to that of the others. At least 1s.
     */
    window: Duration
  }
  /**
   * If a smaller share of the endpoints, in percent, is not evicted, evicted ones are used too. Default: only if all are evicted.
   */
  panicThreshold?: number
}
/**
 * How servers of LLMs are picked.
 */
export interface ModelServer {
  /**
   * The program that the servers run, which names their metrics. Default: found out by the names of the metrics.
   */
  engine?: 'VLLM' | 'SGLang' | 'TGI' | 'TensorRTLLM' | 'LlamaCpp'
  /**
   * Path of the metrics. Default: /metrics, for TensorRTLLM /prometheus/metrics.
   */
  metricsPath?: string
  /**
   * How much each reason counts.
   */
  weights?: {
    /**
     * Tokens of the prompt that the server has not cached. In percent of the default. Default: 100.
     */
    prefix?: number
    /**
     * Tokens of other prompts that the server has to read first, and requests that wait there. In percent of the default. Default: 100.
     */
    queue?: number
    /**
     * Requests in flight at the server. In percent of the default. Default: 100.
     */
    running?: number
    /**
     * A KV cache that is nearly full. In percent of the default. Default: 100.
     */
    kvCache?: number
    /**
     * A LoRA adapter that the server has to load. In percent of the default. Default: 100.
     */
    adapter?: number
  }
}
/**
 * The key of a request. Requests without one are balanced as LeastRequest does. If several backends of a rule have weights, the key selects the backend too.
 */
export interface ConsistentHash {
  /**
   * Where the key is. SourceAddress: the address of the client, for IPv6 its /64 network.
   */
  type: 'Header' | 'Cookie' | 'QueryParam' | 'SourceAddress'
  /**
   * Name of the header, cookie or query parameter.
   */
  name?: string
  /**
   * Lifetime of the cookie that is set if a request has none. Default: the session of the browser. At least 1s.
   */
  ttl?: Duration
  /**
   * Requests in flight that an endpoint may have, in percent of the average; further ones go to the next endpoint of their key. Default: no limit.
   */
  maxLoad?: number
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
   * Fields of the request body to compute. Takes precedence over overrides of the same field.
   *
   * @minItems 1
   * @maxItems 64
   */
  transformations?: FieldTransformation[]
  /**
   * Model names that clients may use, each with the model name of the provider. A `*` in a name matches any text; an exact name takes precedence over patterns, a longer pattern over a shorter one.
   */
  modelAliases?: {
    [k: string]: string
  }
  promptCaching?: PromptCachingConfig
  /**
   * Types of requests by URL path: keys are path suffixes, the longest match decides; `*` matches any path. Not set: all requests are Completions.
   */
  routes?: {
    [k: string]: RouteType
  }
  /**
   * Handling of requests of type Passthrough, Detect or Realtime if a prompt guard, `models` of the API key or a token limit is in force: some or all of these do not check such requests. Allow: the request is forwarded, and the status names the paths. Reject: the response is 403. Default: Allow.
   */
  unguardedRoutes?: 'Allow' | 'Reject'
  /**
   * Parts of a request that the format of the provider lacks and that only add an option, such as `store` or tools that another provider would run. Omit: left out, and named in the response header `x-proxy-omitted`, the access log and a metric. Reject: the response is 400. What changes the meaning of the response is 400 in both cases. Default: Omit.
   */
  unsupported?: 'Omit' | 'Reject'
  /**
   * Longest time from sending a streaming request to a provider until the first content of its response. A slower attempt fails: `traffic.retry` repeats it at another provider, or the client gets 504. Default: none. At least 1ms.
   */
  firstTokenTimeout?: Duration
  /**
   * Longest pause between two pieces of a streamed response after its first content. The stream then ends with an error event in the format of the client. Default: none. At least 1ms.
   */
  streamIdleTimeout?: Duration
  /**
   * Prices of models, for `llm.cost` and the cost metric. They take precedence over `priceCatalog`. Keys are model names of the response or the request; `*` matches any text, an exact name takes precedence over patterns, a longer pattern over a shorter one.
   */
  prices?: {
    [k: string]: ModelPrice
  }
  priceCatalog?: PriceCatalog
  cache?: LlmCache
  /**
   * Counts the tokens of prompts and reserves them in token limits before requests are sent; the response corrects the reservation to the actual usage. Requests whose prompt exceeds a limit are rejected with 429. Default: false.
   */
  reserveTokens?: boolean
}
/**
 * Stores responses to chat requests and returns them to equal requests.
 */
export interface LlmCache {
  /**
   * Requests share responses only if this text is equal. Without a value, the request is not cached.
   */
  tenant: CELExpression
  /**
   * Time for which a response is used. Default: 5m. At least 1ms.
   */
  ttl?: Duration
  /**
   * Where responses are stored. Memory: in each replica. Redis: in the server of `config.redis` of the data plane, shared by replicas; without one, in memory. Default: Memory.
   */
  store?: 'Memory' | 'Redis'
  /**
   * Requests with tools, tool calls or tool results. Allow: they are cached if all tools run at the client. Default: Bypass.
   */
  tools?: 'Bypass' | 'Allow'
}
/**
 * Prices of models that `prices` does not name, in US dollars.
 */
export interface PriceCatalog {
  configMapRef?: PriceCatalogReference
  /**
   * Prices that are part of the product, of models that the ConfigMap does not name. Default: "Enabled".
   */
  builtIn?: 'Enabled' | 'Disabled'
}
/**
 * A price catalog: a key of a ConfigMap in the namespace of the referring object, in JSON or YAML. A catalog that is missing or broken is reported in the status; its models have no price.
 */
export interface PriceCatalogReference {
  /**
   * Name of the ConfigMap.
   */
  name: string
  /**
   * Key.
   */
  key: string
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
  value: unknown
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
 * Prices per million tokens or units, in a currency of your choice, as decimal numbers in text such as "2.50".
 */
export interface ModelPrice {
  /**
   * Price of input tokens.
   */
  input: string
  /**
   * Price of output tokens.
   */
  output: string
  /**
   * Price of input tokens that the provider read from its cache. Default: input.
   */
  cacheRead?: string
  /**
   * Price of input tokens that the provider wrote to its cache. Default: input.
   */
  cacheWrite?: string
  /**
   * Price of output tokens for reasoning. Default: output.
   */
  reasoning?: string
  /**
   * Price of search units, of models that rank. Units count if the tokens of a response cost nothing.
   */
  searches?: string
  /**
   * Price of images that a model makes. Units count if the tokens of a response cost nothing.
   */
  images?: string
  /**
   * Price of seconds of audio. Units count if the tokens of a response cost nothing.
   */
  seconds?: string
  /**
   * Price of characters of a text that a model speaks. Units count if the tokens of a response cost nothing.
   */
  characters?: string
}
/**
 * Adds cache points to requests. Supported by `bedrock` (Amazon Bedrock) for Claude 3 and later and Nova models; ignored elsewhere.
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
   * Minimum length of the system messages, estimated as words times 1.3. Default: 1024.
   */
  minTokens?: number
}
/**
 * Checks of prompts and responses. Each list runs in order; the first rejection ends the request.
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
   * Checks of the response.
   *
   * @minItems 1
   * @maxItems 8
   */
  response?: PromptguardResponse[]
}
/**
 * One check of the prompt: exactly one of regex, webhook, openAIModeration, bedrockGuardrails, googleModelArmor, or of their neutral names. A service that cannot be reached rejects the request.
 */
export interface PromptguardRequest {
  regex?: Regex
  webhook?: Webhook
  openAIModeration?: ModerationAPI
  /**
   * Neutral name of openAIModeration.
   */
  moderationApi?: ModerationAPI
  bedrockGuardrails?: CloudGuardrails
  /**
   * Neutral name of bedrockGuardrails.
   */
  cloudGuardrails?: CloudGuardrails
  googleModelArmor?: ModelArmor
  /**
   * Neutral name of googleModelArmor.
   */
  modelArmor?: ModelArmor
  /**
   * Response to rejected requests. Default message: The request was rejected due to inappropriate content.
   */
  response?: CustomResponse
}
/**
 * One check of the response: exactly one of regex, webhook, bedrockGuardrails, googleModelArmor, or of their neutral names. A service that cannot be reached rejects the response.
 */
export interface PromptguardResponse {
  regex?: Regex
  webhook?: Webhook
  bedrockGuardrails?: CloudGuardrails
  /**
   * Neutral name of bedrockGuardrails.
   */
  cloudGuardrails?: CloudGuardrails
  googleModelArmor?: ModelArmor
  /**
   * Neutral name of googleModelArmor.
   */
  modelArmor?: ModelArmor
  /**
   * Replacement of rejected responses. Default message: The response was rejected due to inappropriate content.
   */
  response?: CustomResponse
}
/**
 * Response to the client if content is rejected.
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
 * Searches for patterns: those of `matches` and of `builtins`.
 */
export interface Regex {
  /**
   * Custom patterns. One that does not compile is reported in the status and rejects everything.
   *
   * @minItems 1
   *
   * Items: Pattern, RE2 syntax.
   */
  matches?: LongString[]
  /**
   * Predefined patterns.
   *
   * @minItems 1
   *
   * Items: Ssn: US social security number. CreditCard: card number with valid check digit. CaSin: Canadian social insurance number.
   */
  builtins?: ('Ssn' | 'CreditCard' | 'PhoneNumber' | 'Email' | 'CaSin')[]
  /**
   * Action on a match in a prompt, or in arguments and results of tools. Mask replaces the text, Reject rejects the request. Matches in responses of models are always masked. Default: "Mask".
   */
  action?: 'Mask' | 'Reject'
}
/**
 * Calls a webhook over HTTP.
 */
export interface Webhook {
  /**
   * The service: a Service or a ProxyBackend.
   */
  backendRef: BackendObjectReference
  /**
   * Request headers to send to the webhook: those that match one of these. Default: none.
   *
   * @maxItems 64
   */
  forwardHeaderMatches?: HTTPHeaderMatch[]
}
/**
 * Calls the moderation endpoint of OpenAI.
 */
export interface ModerationAPI {
  /**
   * Moderation model. Default: omni-moderation-latest.
   */
  model?: string
  /**
   * Connection to the service; `auth` with key or secretRef is needed.
   */
  policies?: BackendSimple
}
/**
 * Calls Amazon Bedrock Guardrails.
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
   * Connection to the service; `auth` with aws, key or secretRef.
   */
  policies?: BackendSimple
}
/**
 * Calls Google Model Armor.
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
   * Connection to the service; `auth` with gcp.
   */
  policies?: BackendSimple
}
/**
 * MCP settings; only for backends of type mcp.
 */
export interface BackendMCP {
  /**
   * Authorization of each tool, prompt and resource (`mcp.tool.name`, `mcp.tool.target`, and so on): lists omit those that are not allowed, and calls of them are rejected as unknown. Rules of all levels apply together.
   */
  authorization?: Authorization
  authentication?: MCPAuthentication
  toolGuards?: McpToolGuards
}
/**
 * Checks of the arguments and results of tools, with the guards of `ai.promptGuard`. Each list runs in order. A rejected call has a result with `isError` and the message of the guard; `statusCode` is not used. The most specific level applies; that of a target replaces that of the backend.
 */
export interface McpToolGuards {
  /**
   * Checks of the arguments. A call that is rejected does not reach the server.
   *
   * @minItems 1
   * @maxItems 8
   */
  input?: PromptguardRequest[]
  /**
   * Checks of the result, and of an error of the server.
   *
   * @minItems 1
   * @maxItems 8
   */
  output?: PromptguardRequest[]
}
/**
 * MCP OAuth: clients without a valid token receive the location of the authorization server. The proxy serves the discovery documents and registers clients with the identity provider on their behalf.
 */
export interface MCPAuthentication {
  /**
   * Members of the protected resource metadata document (RFC 9728), for example `scopesSupported`; they take precedence over computed ones.
   */
  resourceMetadata?: {
    /**
     * Any JSON value.
     */
    [k: string]: unknown
  }
  /**
   * Kind of identity provider whose metadata needs adapting. auth0 (IdpKind1), or keycloak (IdpKind2). Not set: one that follows the standards.
   */
  provider?: 'IdpKind1' | 'auth0' | 'IdpKind2' | 'keycloak'
  /**
   * Required value of the `iss` claim; also the location of the metadata of the identity provider.
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
  jwks: RemoteJWKS
  /**
   * Strict: a valid token must be present, else 401. Optional: a token that is present must be valid; requests without one pass. Permissive: no request is rejected; claims of valid tokens are usable for later authorization and logging. Default: "Strict".
   */
  mode?: 'Strict' | 'Optional' | 'Permissive'
}
/**
 * An LLM backend: exactly one of provider, groups, models.
 */
export interface AIBackend {
  /**
   * The only provider. A policy can target it by `sectionName: backend`.
   */
  provider?: LLMProvider
  /**
   * Groups of providers in priority order: requests go to the first group with a provider that is not evicted. Eviction needs `policies.health.eviction`.
   *
   * @minItems 1
   * @maxItems 8
   */
  groups?: PriorityGroup[]
  /**
   * Models by the names that clients ask for, each with the backends that serve it. A policy can target a model by its name (`sectionName`). Of the policies of this backend, only `ai` applies to targets.
   *
   * @minItems 1
   * @maxItems 64
   */
  models?: AIModel[]
}
/**
 * Moves the requests of a rule to its last target, step by step. The other targets of the rule, the baseline, get the rest by weight; `by` is not used. A change of the targets or of steps begins anew.
 */
export interface AIModelRollout {
  /**
   * Rising percentages. After the last step all requests go to the last target.
   *
   * @minItems 1
   * @maxItems 16
   *
   * Items: Percentage of the requests that go to the last target.
   */
  steps: number[]
  /**
   * Least time of each step. At least 1s. Default: "30m".
   */
  every?: Duration
  /**
   * Attempts with the last target, in each step, before the next step and before abortIf is evaluated. Default: 50.
   */
  minSamples?: number
  /**
   * Condition that ends the rollout: the last target gets no more requests. With `errorRate`, `p50`, `p95`, `firstTokenP50`, `firstTokenP95` (seconds), `cost` (mean, US dollars) and `samples` of the last target in the step, and the same of the baseline as `baseline.p95`. While it fails, for example without a price, the step stays.
   */
  abortIf?: CELExpression
  /**
   * Run: as above. Pause: the step stays; abortIf still holds. Promote: all requests go to the last target. Abort: none. Run after Promote or Abort begins anew. Default: "Run".
   */
  action?: 'Run' | 'Pause' | 'Promote' | 'Abort'
}
/**
 * State of a rollout. Written by the gateway.
 */
export interface AIModelRolloutState {
  /**
   * Name of the model.
   */
  model: string
  /**
   * Index of its rule.
   */
  rule: number
  /**
   * Digest of targets and steps.
   */
  id: string
  /**
   * Progressing and Paused: at a step. Promoted: all requests go to the new target. Aborted: none.
   */
  phase: 'Progressing' | 'Paused' | 'Promoted' | 'Aborted'
  /**
   * Index of the step.
   */
  step: number
  /**
   * Percentage of the requests that go to the new target.
   */
  weight: number
  /**
   * Begin of the step, RFC 3339.
   */
  since: string
  /**
   * What the rollout waits for, or why it ended.
   */
  message: string
  /**
   * The phase is that of the field action.
   */
  byAction?: boolean
  /**
   * Last known numbers of the baseline, as in abortIf.
   */
  baseline?: {
    /**
     * Decimal number.
     */
    [k: string]: string
  }
}
/**
 * A model: exactly one of to, rules.
 */
export interface AIModel {
  /**
   * Name that clients ask for, or a pattern with one `*` at one end. An exact name wins, then the longest pattern.
   */
  name: string
  /**
   * Targets of all requests.
   *
   * @minItems 1
   * @maxItems 16
   */
  to?: AIModelTarget[]
  /**
   * Targets by condition: the first rule that matches. If none does, the model does not exist for the request: 404.
   *
   * @minItems 1
   * @maxItems 16
   */
  rules?: AIModelRule[]
  /**
   * Targets for requests whose target failed before the first content, in order.
   *
   * @minItems 1
   * @maxItems 8
   */
  fallback?: AIModelFallback[]
  shadow?: AIModelShadow
  /**
   * Choice among healthy targets that can serve the request. Weight: random, by weight. LeastLatency: the fastest by recent responses. LeastCost: the cheapest for the request. LeastBusy: the fewest requests in flight, relative to weight. Default: "Weight".
   */
  by?: 'Weight' | 'LeastLatency' | 'LeastCost' | 'LeastBusy'
  /**
   * Requests with the same value go to the same target, in all replicas; `by` is not used. Null, empty and errors: as not set.
   */
  sticky?: CELExpression
  /**
   * Internal: only targets of models name it; clients get 404, and lists omit it. Default: "Public".
   */
  visibility?: 'Public' | 'Internal'
}
/**
 * A rule of a model.
 */
export interface AIModelRule {
  /**
   * Condition, with `llmRequest`, `llm.promptTokens`, `llm.modalities`, `llm.prices` and the variables of the request. Not set: always true. Errors: false.
   */
  when?: CELExpression
  /**
   * Targets, of which one is chosen.
   *
   * @minItems 1
   * @maxItems 16
   */
  to: AIModelTarget[]
  rollout?: AIModelRollout
}
/**
 * Targets after failures of some causes.
 */
export interface AIModelFallback {
  /**
   * Causes.
   *
   * @minItems 1
   * @maxItems 12
   *
   * Items: Cause.
   */
  on: (
    | 'RateLimit'
    | 'Quota'
    | 'Overloaded'
    | 'Timeout'
    | 'ServerError'
    | 'FirstToken'
    | 'ContextLength'
    | 'ContentFilter'
    | 'Budget'
    | 'Auth'
    | 'ModelNotFound'
    | 'Unreachable'
  )[]
  /**
   * Targets, of which one is chosen.
   *
   * @minItems 1
   * @maxItems 16
   */
  to: AIModelTarget[]
}
/**
 * A backend that serves a model.
 */
export interface AIModelTarget {
  backendRef: AIModelBackendReference
  /**
   * Model that the backend is asked for. Default: its own, if it has one, else the name that the client asked for.
   */
  model?: ShortString
  /**
   * Share of the requests, relative to the other targets; 0: none. Default: 1.
   */
  weight?: number
}
/**
 * A backend that serves a model.
 */
export interface AIModelShadowTarget {
  backendRef: AIModelBackendReference
  /**
   * Model that the backend is asked for. Default: its own, if it has one, else the name that the client asked for.
   */
  model?: ShortString
}
/**
 * Copies of chats go to another model, whose responses are compared and discarded.
 */
export interface AIModelShadow {
  to: AIModelShadowTarget
  /**
   * Percentage of the chats that are copied. 0: none.
   */
  percent: number
  /**
   * US dollars for the copies and the judge in each `window`, of each replica. Copies that may exceed it, and models without a price, are skipped.
   */
  budget: string
  /**
   * Calendar window of `budget`, in UTC. Default: "Month".
   */
  window?: 'Hour' | 'Day' | 'Week' | 'Month'
  /**
   * Limit of a copy, and of each request to the judge. From 1s to 10m. Default: "60s".
   */
  timeout?: Duration
  /**
   * Copies in flight, in each worker of a replica. 64 more wait, others are skipped. Default: 4.
   */
  concurrency?: number
  judge?: AIModelJudge
}
/**
 * A model that judges which response is better. The budget of the shadow pays it.
 */
export interface AIModelJudge {
  to: AIModelShadowTarget
  /**
   * What makes a response better, for the judge.
   */
  rubric: string
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
 * One LLM provider: exactly one of openai, azureOpenAI, anthropic, gemini, vertexAI, bedrock, their neutral names providerA to providerF, preset, custom.
 */
export interface LLMProvider {
  openai?: ProviderA
  /**
   * Neutral name of openai.
   */
  providerA?: ProviderA
  azureOpenAI?: ProviderB
  /**
   * Neutral name of azureOpenAI.
   */
  providerB?: ProviderB
  anthropic?: ProviderC
  /**
   * Neutral name of anthropic.
   */
  providerC?: ProviderC
  gemini?: ProviderD
  /**
   * Neutral name of gemini.
   */
  providerD?: ProviderD
  vertexAI?: ProviderE
  /**
   * Neutral name of vertexAI.
   */
  providerE?: ProviderE
  bedrock?: ProviderF
  /**
   * Neutral name of bedrock.
   */
  providerF?: ProviderF
  /**
   * A provider whose host, paths, APIs and peculiarities are known. Servers of your own: databricks, ollama, vllm, sglang, llamacpp, lmstudio, tgi.
   */
  preset?:
    | 'groq'
    | 'mistral'
    | 'deepseek'
    | 'xai'
    | 'together'
    | 'fireworks'
    | 'openrouter'
    | 'baseten'
    | 'cerebras'
    | 'deepinfra'
    | 'huggingface'
    | 'nvidia'
    | 'perplexity'
    | 'cohere'
    | 'moonshot'
    | 'zhipu'
    | 'zai'
    | 'minimax'
    | 'dashscope'
    | 'sambanova'
    | 'novita'
    | 'databricks'
    | 'ollama'
    | 'vllm'
    | 'sglang'
    | 'llamacpp'
    | 'lmstudio'
    | 'tgi'
  /**
   * Model to use instead of that of the request, of a preset. Not set: that of the request.
   */
  model?: ShortString
  custom?: CustomProvider
  /**
   * Host to send requests to, in plaintext unless `policies.tls` is set; needs port. Default: the host of the provider, over TLS.
   */
  host?: Host
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
 * One LLM provider of a group: exactly one of openai, azureOpenAI, anthropic, gemini, vertexAI, bedrock, their neutral names providerA to providerF, preset, custom.
 */
export interface NamedLLMProvider {
  /**
   * Name, unique in the backend; a policy can target the provider by it (`sectionName`).
   */
  name: SectionName
  openai?: ProviderA
  /**
   * Neutral name of openai.
   */
  providerA?: ProviderA
  azureOpenAI?: ProviderB
  /**
   * Neutral name of azureOpenAI.
   */
  providerB?: ProviderB
  anthropic?: ProviderC
  /**
   * Neutral name of anthropic.
   */
  providerC?: ProviderC
  gemini?: ProviderD
  /**
   * Neutral name of gemini.
   */
  providerD?: ProviderD
  vertexAI?: ProviderE
  /**
   * Neutral name of vertexAI.
   */
  providerE?: ProviderE
  bedrock?: ProviderF
  /**
   * Neutral name of bedrock.
   */
  providerF?: ProviderF
  /**
   * A provider whose host, paths, APIs and peculiarities are known. Servers of your own: databricks, ollama, vllm, sglang, llamacpp, lmstudio, tgi.
   */
  preset?:
    | 'groq'
    | 'mistral'
    | 'deepseek'
    | 'xai'
    | 'together'
    | 'fireworks'
    | 'openrouter'
    | 'baseten'
    | 'cerebras'
    | 'deepinfra'
    | 'huggingface'
    | 'nvidia'
    | 'perplexity'
    | 'cohere'
    | 'moonshot'
    | 'zhipu'
    | 'zai'
    | 'minimax'
    | 'dashscope'
    | 'sambanova'
    | 'novita'
    | 'databricks'
    | 'ollama'
    | 'vllm'
    | 'sglang'
    | 'llamacpp'
    | 'lmstudio'
    | 'tgi'
  /**
   * Model to use instead of that of the request, of a preset. Not set: that of the request.
   */
  model?: ShortString
  custom?: CustomProvider
  /**
   * Host to send requests to, in plaintext unless `policies.tls` is set; needs port. Default: the host of the provider, over TLS.
   */
  host?: Host
  /**
   * Port to send requests to; needs host. Default: 443.
   */
  port?: number
  /**
   * Path of all requests to the provider, instead of its own.
   */
  path?: LongString
  /**
   * Policies for this provider; they take precedence over those of the backend.
   */
  policies?: BackendWithAI
}
/**
 * A provider that has no preset: an address, APIs and their peculiarities.
 */
export interface CustomProvider {
  /**
   * URL in front of `/chat/completions`, `/responses`, `/messages` and `/embeddings`, such as `https://llm.example.com/v1`.
   */
  baseUrl: string
  /**
   * Model to use instead of that of the request. Not set: that of the request.
   */
  model?: ShortString
  /**
   * APIs of the server. Default: Completions and Embeddings.
   *
   * @minItems 1
   * @maxItems 4
   *
   * Items: API.
   */
  formats?: ('Completions' | 'Responses' | 'Messages' | 'Embeddings')[]
  /**
   * How the credential of `policies.auth` is sent. Default: `Authorization: Bearer`.
   */
  auth?: {
    /**
     * Header; its name ends with key, token or authorization. Default: Authorization.
     */
    header?: string
    /**
     * Word before the credential. Default: Bearer in Authorization, none in other headers.
     */
    scheme?: string
  }
  rules?: ServerRules
}
/**
 * Peculiarities of a server with the Chat Completions API. A field that is not set: the rule of the family of the model.
 */
export interface ServerRules {
  /**
   * Field of the token limit.
   */
  tokenLimit?: 'max_tokens' | 'max_completion_tokens'
  /**
   * Fields of requests that the server rejects; they are left out.
   *
   * @minItems 1
   * @maxItems 32
   *
   * Items: Field.
   */
  drop?: string[]
  /**
   * Fields of requests that the server has under another name.
   */
  rename?: {
    /**
     * Field.
     */
    [k: string]: string
  }
  /**
   * Whether messages may have a field name.
   */
  messageNames?: boolean
  /**
   * Whether messages may have the role developer; if not, it becomes system.
   */
  developerRole?: boolean
  /**
   * Ids of tool calls that the server accepts. NineAlphanumeric: nine letters and digits.
   */
  toolCallIds?: 'Any' | 'NineAlphanumeric'
  /**
   * How reasoning is asked for. Effort: reasoning_effort. Thinking: thinking.type, and reasoning_effort with efforts. EnableThinking: enable_thinking. None: not at all.
   */
  reasoning?: 'Effort' | 'Thinking' | 'EnableThinking' | 'None'
  /**
   * Reasoning of earlier responses. Text: sent as reasoning_content. None: left out.
   */
  reasoningHistory?: 'Text' | 'None'
  /**
   * Values of the effort, in rising order. Others become the nearest one.
   *
   * @minItems 1
   * @maxItems 8
   *
   * Items: Field.
   */
  efforts?: string[]
  /**
   * Formats of responses. Object: JSON without a schema; schemas become it. None: response_format is left out.
   */
  outputFormat?: 'Schema' | 'Object' | 'None'
  /**
   * Whether tools may have the field strict.
   */
  strictTools?: boolean
  /**
   * Whether images may be URLs. If not, requests with them get 400.
   */
  imageUrls?: boolean
  /**
   * Most stop sequences; others are left out.
   */
  maxStops?: number
  /**
   * Whether streams report usage only if stream_options asks for it.
   */
  streamUsage?: boolean
}
/**
 * OpenAI.
 */
export interface ProviderA {
  /**
   * Model to use instead of that of the request. Not set: that of the request.
   */
  model?: ShortString
  /**
   * Chat APIs of the server. Default: both; Completions after a 404 of Responses.
   *
   * @minItems 1
   * @maxItems 2
   *
   * Items: API.
   */
  formats?: ('Completions' | 'Responses')[]
}
/**
 * Azure OpenAI.
 */
export interface ProviderB {
  /**
   * Host of the resource, for example `my-resource.openai.azure.com`; a scheme and a path are ignored.
   */
  endpoint: string
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
 * Anthropic.
 */
export interface ProviderC {
  /**
   * Model to use instead of that of the request. Not set: that of the request.
   */
  model?: ShortString
}
/**
 * Google Gemini.
 */
export interface ProviderD {
  /**
   * Model to use instead of that of the request. Not set: that of the request.
   */
  model?: ShortString
}
/**
 * Google Vertex AI.
 */
export interface ProviderE {
  /**
   * Model to use instead of that of the request. Not set: that of the request.
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
 * Amazon Bedrock.
 */
export interface ProviderF {
  /**
   * AWS region. Default: "us-east-1".
   */
  region?: string
  /**
   * Model to use instead of that of the request. Not set: that of the request.
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
   * Stateful: clients have a session (`mcp-session-id`) that stays on the same replica of each target. Stateless: each request has its own session with the target. Default: "Stateful".
   */
  sessionRouting?: 'Stateful' | 'Stateless'
  /**
   * Handling of a target that fails. FailClosed fails requests that need all targets; FailOpen returns the results of the other targets. Default: "FailClosed".
   */
  failureMode?: 'FailClosed' | 'FailOpen'
  /**
   * Whether names get the name of the target as prefix. Conditional: if there is more than one target. Never: names that several targets offer are omitted. Default: "Conditional".
   */
  prefixMode?: 'Conditional' | 'Always' | 'Never'
  /**
   * Portable: clients see names of tools of at most 64 letters, digits, `_` and `-`, which all LLM APIs accept. Other names have `_` for other characters and end with a digest. Default: Unchanged.
   */
  toolNames?: 'Unchanged' | 'Portable'
  /**
   * Enabled: clients see three tools, to search, describe and call those of the targets, so that many tools do not fill the context of a model. Default: Disabled.
   */
  toolSearch?: 'Disabled' | 'Enabled'
  toolPins?: McpToolPins
  /**
   * Origins of pages that may send requests, besides that of the Host, loopback origins if the Host is a loopback name, and those that a CORS policy of the route allows. Requests with another Origin, also `null`, get 403; those without Origin come from no page. Default: none.
   *
   * @minItems 1
   * @maxItems 64
   *
   * Items: `*`, or `scheme://host[:port]` with scheme http or https; the host may start with `*.` or be `*`.
   */
  allowOrigins?: string[]
  /**
   * Parts of the backend, by path or host. With views, requests that match none get 404.
   *
   * @minItems 1
   * @maxItems 32
   */
  views?: McpView[]
}
/**
 * Compares tools with digests that a user approved.
 */
export interface McpToolPins {
  /**
   * Pins, as `proxyctl mcp approve` writes them. If they are missing or broken, no tool is approved.
   */
  configMapRef: ConfigMapKeyReference
  /**
   * New and changed tools. Audit: only log and metric. Hold: hidden until approved. Block: as Hold, and a target that changed or imitated an approved tool offers none.
   */
  action: 'Audit' | 'Hold' | 'Block'
}
/**
 * Some targets and tools, for requests with a path and host. The most specific host decides, then the longest path.
 */
export interface McpView {
  /**
   * Name, unique in the backend.
   */
  name: SectionName
  /**
   * Prefix of the path, in whole segments.
   */
  path?: string
  /**
   * Host, or `*.` and a domain.
   */
  hostname?: string
  /**
   * Names of targets. Default: all.
   *
   * @minItems 1
   * @maxItems 128
   *
   * Items: Name; `*` stands for any characters.
   */
  targets?: string[]
  /**
   * Tools, by their names for clients, with prefix.
   */
  tools?: {
    /**
     * Default: all.
     *
     * @minItems 1
     * @maxItems 128
     *
     * Items: Name; `*` stands for any characters.
     */
    include?: string[]
    /**
     * Stronger than include.
     *
     * @minItems 1
     * @maxItems 128
     *
     * Items: Name; `*` stands for any characters.
     */
    exclude?: string[]
  }
}
/**
 * One or more MCP servers: exactly one of selector, static, command. With openapi or grpc, a service of another kind: at static, or at the Service of its backendRef.
 */
export interface McpTargetSelector {
  /**
   * Name, unique in the backend; a policy can target it by `sectionName`.
   */
  name: SectionName
  selector?: McpSelector
  static?: McpTarget
  tools?: McpTools
  openapi?: McpOpenApi
  grpc?: McpGrpc
  /**
   * A program that speaks MCP over stdio; each session has a process of its own. In a cluster only with image.
   *
   * @minItems 1
   * @maxItems 128
   *
   * Items: Program, then arguments.
   */
  command?: string[]
  /**
   * Environment of command. In a cluster, that of the image and of overlays is added; in a config file there is no other, not even PATH.
   */
  env?: {
    /**
     * Value.
     */
    [k: string]: string
  }
  /**
   * Container image that command runs in, as `registry/repository`, with a tag or a digest. The operator runs it as a Deployment in the namespace of the backend. Only in a cluster, and only if ProxyParameters list it in `mcp.images`.
   */
  image?: string
}
/**
 * Makes an HTTP API, described by an OpenAPI 3.0 or 3.1 document, an MCP server: operations become tools. The document is no source of addresses: requests go to static or to backendRef only.
 */
export interface McpOpenApi {
  /**
   * The document: a key of a ConfigMap in the namespace of the backend, in JSON or YAML. A key of `binaryData` may be compressed with gzip. A document that is missing or broken is reported in the status, and the target has no tools.
   */
  configMapRef?: ConfigMapKeyReference
  /**
   * The document: an http or https URL, or a path at the target, whose TLS settings apply. The operator fetches it, follows no redirects, and keeps the last document while fetches fail.
   */
  url?: string
  /**
   * Time between fetches of url. Default: 5m. At least 10s.
   */
  refreshInterval?: Duration
  /**
   * The Service that serves the API, instead of static. Policies that target the Service apply.
   */
  backendRef?: BackendObjectReference
  /**
   * Base path of the API, for all operations. Default: the path of the first of `servers` of the document, or of the operation.
   */
  path?: string
  /**
   * Operations that become tools: those that match any entry. Default: all.
   *
   * @minItems 1
   * @maxItems 64
   */
  include?: McpOpenApiMatch[]
  /**
   * Operations that become no tools, though they match include.
   *
   * @minItems 1
   * @maxItems 64
   */
  exclude?: McpOpenApiMatch[]
  /**
   * Result of a successful call, computed from the response of the API, such as `json(response.body).items`. Tools have no output schema then.
   */
  response?: CELExpression
  /**
   * Names of tools, by operationId, or by `METHOD /path` as in the document. Default: the operationId, or method and path.
   */
  rename?: {
    /**
     * Name of the tool.
     */
    [k: string]: string
  }
}
/**
 * Makes a gRPC server an MCP server: unary methods become tools.
 */
export interface McpGrpc {
  /**
   * The descriptor set: a key of `binaryData` of a ConfigMap, as `protoc --include_imports --descriptor_set_out` writes it. Not set: the reflection service of the server.
   */
  configMapRef?: ConfigMapKeyReference
  /**
   * The Service of the server, instead of static.
   */
  backendRef?: BackendObjectReference
  /**
   * Methods that become tools. Default: all.
   *
   * @minItems 1
   * @maxItems 64
   *
   * Items: Pattern of a full name such as `shop.v1.Carts/Get*`; `*` is any text.
   */
  include?: string[]
  /**
   * Stronger than include.
   *
   * @minItems 1
   * @maxItems 64
   *
   * Items: Pattern of a full name such as `shop.v1.Carts/Get*`; `*` is any text.
   */
  exclude?: string[]
}
/**
 * Matches operations by all fields that are set. Patterns match the entire value; `*` is any text, in a path any text without `/`, and `**` any text in a path.
 */
export interface McpOpenApiMatch {
  /**
   * Pattern of the operationId, such as `list*`.
   */
  operationId?: string
  /**
   * Pattern of one of the tags.
   */
  tag?: string
  /**
   * Pattern of method and path, such as `GET /pets/{id}` or `* /pets/**`.
   */
  path?: string
}
/**
 * Selects Services; their ports with appProtocol `proxy.dev/mcp` or `proxy.dev/mcp-sse` become targets. Policies for one of them: a ProxyPolicy that targets the Service.
 */
export interface McpSelector {
  /**
   * Namespaces to look in. Not set: only that of the backend. Other namespaces need a ReferenceGrant, from ProxyBackends (`group: proxy.dev`) of the namespace of the backend to Services; servers without one are skipped, and the status says so.
   */
  namespaces?: LabelSelector
  /**
   * Services to select.
   */
  services?: LabelSelector
}
/**
 * One MCP server at a fixed address. For Services in the cluster prefer selector.
 */
export interface McpTarget {
  host: Host
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
   * Policies for this target; they take precedence over those of the backend and of ProxyPolicies.
   */
  policies?: BackendWithMCP
}
/**
 * Which tools of a server clients see, and how. Authorization rules, logs and metrics have the names of the server.
 */
export interface McpTools {
  /**
   * Only these tools are offered. Default: all.
   *
   * @minItems 1
   * @maxItems 128
   *
   * Items: Name; `*` stands for any characters.
   */
  include?: string[]
  /**
   * These tools are not offered; stronger than include.
   *
   * @minItems 1
   * @maxItems 128
   *
   * Items: Name; `*` stands for any characters.
   */
  exclude?: string[]
  /**
   * Changes of single tools.
   *
   * @minItems 1
   * @maxItems 64
   */
  overrides?: McpToolOverride[]
}
/**
 * How clients see one tool.
 */
export interface McpToolOverride {
  /**
   * Name as the server has it, without the prefix of the target.
   */
  name: string
  /**
   * Name for clients; the prefix of the target is added to it. A tool of the server with this name is not offered.
   */
  rename?: string
  /**
   * Description for clients.
   */
  description?: string
  /**
   * Arguments that the gateway sets, by name. Clients do not see them; values that clients send are replaced.
   */
  arguments?: {
    /**
     * Any JSON but null.
     */
    [k: string]: unknown
  }
  /**
   * As arguments, with values computed from the request, for example `jwt.sub`; stronger than arguments. If an expression fails, so does the call.
   */
  computedArguments?: {
    [k: string]: CELExpression
  }
}
/**
 * One fixed destination.
 */
export interface StaticBackend {
  host: Host
  /**
   * Port.
   */
  port: number
}
/**
 * An agent that speaks A2A.
 */
export interface A2ABackend {
  host: Host
  /**
   * Port.
   */
  port: number
  /**
   * Skills that agent cards show: those that an entry selects. Not set: all. Requests name no skill, so that this limits what clients see, not what they can ask for.
   *
   * @minItems 1
   * @maxItems 64
   */
  skills?: A2ASkill[]
  /**
   * Signs agent cards, because signatures of the agent do not match a card that the gateway changes.
   */
  cardSigning?: A2ACardSigning
}
/**
 * Selects skills of an agent card.
 */
export interface A2ASkill {
  /**
   * Id of the skill; `*` stands for any characters.
   */
  id: string
  /**
   * Shows the skills to requests for which it is true, such as `"staff" in jwt.groups`. An expression that fails is false. Default: true.
   */
  when?: CELExpression
}
/**
 * A key that agent cards are signed with (JWS, A2A 1.0 section 8.4): exactly one of key, secretRef. If it is not available, cards fail with 503.
 */
export interface A2ACardSigning {
  /**
   * Private key in PEM: EC (P-256, P-384, P-521), Ed25519, or RSA of at least 2048 bits. For config files; in manifests prefer secretRef, because everyone who may read the object can read it.
   */
  key?: string
  /**
   * Secret with the entry `key`: the private key in PEM.
   */
  secretRef?: SecretReference
  /**
   * Header `kid` of signatures. Default: the thumbprint of the public key (RFC 7638).
   */
  keyId?: string
  /**
   * Header `jku` of signatures: the HTTPS URL of a key set with the public key. Default: none.
   */
  jwksUrl?: string
}
/**
 * Sends each request to the host that its Host header names (for TLS traffic, its SNI). Clients can reach any destination: restrict them with `allow`, or with authorization policies. Ports of the gateway itself and addresses that no backend may have (`upstreams.addresses` of ProxyParameters) are rejected with 403; a request that returns to the gateway with 508.
 */
export interface DynamicForwardProxyBackend {
  /**
   * Destinations that are allowed: an address, a range, a host name, or `*.` and a domain. Not set: all.
   *
   * @minItems 1
   * @maxItems 256
   */
  allow?: Destination[]
  /**
   * Destinations that are rejected, even if `allow` contains them.
   *
   * @minItems 1
   * @maxItems 256
   */
  deny?: Destination[]
}
/**
 * A cloud service: exactly one of agentCore and its neutral name agentRuntime.
 */
export interface CloudBackend {
  agentCore?: AgentRuntime
  /**
   * Neutral name of agentCore.
   */
  agentRuntime?: AgentRuntime
}
/**
 * An agent hosted on Amazon Bedrock AgentCore. Requests are forwarded unchanged, signed with `policies.auth.aws`, or the credentials of the environment.
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
 * Deployment settings of data planes. Parameters of a GatewayClass and of a Gateway merge field by field, those of the Gateway take precedence; then overlays apply, that of the GatewayClass first.
 */
export interface ProxyParametersSpec {
  logging?: ProxyLogging
  /**
   * Content of the data plane’s config file (see the config reference), merged with the typed fields, which take precedence. Not validated by the API server; the data plane reports errors.
   */
  rawConfig?: {
    [k: string]: unknown
  }
  image?: Image
  /**
   * Environment variables of the data plane container; they override those set by the operator. Remove one with `$patch: delete` in the deployment overlay. SESSION_KEY and ADMIN_TOKEN replace the Secrets with session key and admin token that the operator maintains for each Gateway.
   */
  env?: EnvVar[]
  resources?: ResourceRequirements
  shutdown?: ShutdownSpec
  mesh?: MeshSpec
  plugins?: PluginsSpec
  mcp?: McpServersSpec
  upstreams?: UpstreamsSpec
  /**
   * Changes to the Deployment.
   */
  deployment?: KubernetesResourceOverlay
  /**
   * Changes to the Service.
   */
  service?: KubernetesResourceOverlay
  /**
   * Changes to the ServiceAccount.
   */
  serviceAccount?: KubernetesResourceOverlay
  /**
   * Creates a PodDisruptionBudget that selects the pods of the data plane, with these changes. Not set: none.
   */
  podDisruptionBudget?: KubernetesResourceOverlay
  /**
   * Creates a HorizontalPodAutoscaler that scales the Deployment of the data plane, with these changes. Not set: none.
   */
  horizontalPodAutoscaler?: KubernetesResourceOverlay
}
/**
 * Logging of the data plane.
 */
export interface ProxyLogging {
  /**
   * A level (`error`, `warn`, `info`, `debug`, `trace`), or comma-separated `module=level` pairs. Default: info.
   */
  level?: string
  /**
   * Format of log lines. Default: text.
   */
  format?: 'json' | 'text'
  /**
   * Names of further headers that hold credentials: their values are `<redacted>` in traces, the live tail and config dumps. Headers with `token`, `secret`, `authorization` and the like in their names always are. Default: none.
   *
   * @maxItems 64
   *
   * Items: A name; `*` is any text, as in `x-acme-*`. Upper and lower case are equal.
   */
  sensitiveHeaders?: string[]
}
/**
 * Image of the data plane. Parts that are not set come from the operator’s settings; an empty string drops the part.
 */
export interface Image {
  /**
   * Registry host.
   */
  registry?: string
  /**
   * Repository.
   */
  repository?: string
  /**
   * Tag. Default: that of this release.
   */
  tag?: string
  /**
   * Digest, for example `sha256:<digest>`.
   */
  digest?: string
  /**
   * `Always`, `IfNotPresent` or `Never`. Default: that of Kubernetes for the tag.
   */
  pullPolicy?: string
}
/**
 * Timing of the shutdown after SIGTERM. Default: 10 and 60.
 */
export interface ShutdownSpec {
  /**
   * Seconds for which new requests are still accepted (CONNECTION_MIN_TERMINATION_DEADLINE).
   */
  min: number
  /**
   * Seconds after which open connections are closed (TERMINATION_GRACE_PERIOD_SECONDS).
   */
  max: number
}
/**
 * Integration with the Istio service mesh: mTLS to pods of the mesh.
 */
export interface MeshSpec {
  /**
   * Address of the mesh CA. Default: `https://istiod.istio-system.svc:15012`.
   */
  caAddress?: string
  /**
   * Trust domain. Default: cluster.local.
   */
  trustDomain?: string
}
/**
 * Permissions of plugins (`traffic.plugins` of policies).
 */
export interface PluginsSpec {
  /**
   * Whether plugins with `isolation: InProcess` may run. They run in the threads of the data plane, with its rights, and can stop it. Without it they fail. Default: false.
   */
  inProcess?: boolean
  /**
   * Images that plugins may come from (`source.image`). Other images are not fetched, and their plugins fail. Default: none.
   *
   * @maxItems 32
   *
   * Items: A registry such as `registry.example.com`, or a repository or the beginning of its path, such as `registry.example.com/plugins`.
   */
  images?: string[]
}
/**
 * Destinations of connections for backends and policies that are refused by default.
 */
export interface UpstreamsSpec {
  /**
   * Loopback, link-local, metadata, unspecified, multicast, reserved and translated addresses that connections may go to, such as `127.0.0.1` for a sidecar. The management ports of the data plane stay refused. Default: none in pods, the loopback addresses elsewhere.
   *
   * @maxItems 64
   *
   * Items: IPv4 or IPv6 address, or a range of them as `address/prefix length`.
   */
  addresses?: string[]
  /**
   * Hosts that may receive the credentials of the data plane itself (`auth.aws` and `auth.azure` without secretRef, `auth.gcp`, and the defaults of LLM providers, guards and agent runtimes), besides API hosts of the cloud. Backends of all authors can use them there. Default: none.
   *
   * @maxItems 64
   *
   * Items: Host name or IP address, or `*.` and a suffix for all names under it.
   */
  identityHosts?: string[]
}
/**
 * MCP servers that the operator starts (`mcp.targets[].image` of backends). Those of a GatewayClass hold for backends of all namespaces, those of a Gateway for backends of its namespace.
 */
export interface McpServersSpec {
  /**
   * Images that may run. Servers of other images are not started. Default: none.
   *
   * @maxItems 32
   *
   * Items: A registry such as `registry.example.com`, or a repository or the beginning of its path, such as `registry.example.com/mcp`.
   */
  images?: string[]
  /**
   * Changes to the Deployment of each server. The container of the server is named `server`, the init container `bridge`.
   */
  deployment?: KubernetesResourceOverlay
  /**
   * Changes to the Service of each server.
   */
  service?: KubernetesResourceOverlay
  /**
   * Changes to the ServiceAccount of each server.
   */
  serviceAccount?: KubernetesResourceOverlay
}
/**
 * Changes to a generated object, applied last.
 */
export interface KubernetesResourceOverlay {
  /**
   * Labels and annotations, merged with existing ones; for equal keys, those of the Gateway take precedence over those of the GatewayClass.
   */
  metadata?: {
    /**
     * Labels.
     */
    labels?: {
      [k: string]: string
    }
    /**
     * Annotations.
     */
    annotations?: {
      [k: string]: string
    }
  }
  /**
   * A full or partial spec, applied as a strategic merge patch: lists with merge keys (containers by name, tolerations by key) update matching items and append others; `$patch: delete` removes a field or item, `$patch: replace` replaces a map, or a list if it is in the first item. The container of the data plane is named `proxy`.
   */
  spec?: {
    [k: string]: unknown
  }
}
/**
 * An environment variable (core/v1 EnvVar).
 */
export interface EnvVar {
  /**
   * Name.
   */
  name: string
  /**
   * Value. `$(NAME)` expands to another variable, `$$(NAME)` is the literal `$(NAME)`.
   */
  value?: string
  /**
   * Where the value comes from instead.
   */
  valueFrom?: {
    /**
     * A key of a ConfigMap.
     */
    configMapKeyRef?: {
      /**
       * Name of the ConfigMap.
       */
      name?: string
      /**
       * Key to select.
       */
      key: string
      /**
       * Whether the object or its key may be missing.
       */
      optional?: boolean
    }
    /**
     * A key of a Secret.
     */
    secretKeyRef?: {
      /**
       * Name of the Secret.
       */
      name?: string
      /**
       * Key to select.
       */
      key: string
      /**
       * Whether the object or its key may be missing.
       */
      optional?: boolean
    }
    /**
     * A field of the pod.
     */
    fieldRef?: {
      /**
       * Version of the schema that fieldPath is written in. Default: v1.
       */
      apiVersion?: string
      /**
       * Path, for example `metadata.name`.
       */
      fieldPath: string
    }
    /**
     * A key of an environment file in a volume.
     */
    fileKeyRef?: {
      /**
       * Volume.
       */
      volumeName: string
      /**
       * Path of the file, relative to the volume.
       */
      path: string
      /**
       * Key in the file.
       */
      key: string
      /**
       * Whether the object or its key may be missing.
       */
      optional?: boolean
    }
    /**
     * A resource of the container.
     */
    resourceFieldRef?: {
      /**
       * Container. Default: this one.
       */
      containerName?: string
      /**
       * Resource, for example `limits.cpu`.
       */
      resource: string
      /**
       * Unit of the value. Default: 1.
       */
      divisor?: number | string
    }
  }
}
/**
 * Compute resources of the container (core/v1 ResourceRequirements). Default: requests of 100m CPU and 128Mi memory.
 */
export interface ResourceRequirements {
  /**
   * Maximum.
   */
  limits?: {
    /**
     * Quantity.
     */
    [k: string]: number | string
  }
  /**
   * Reserved resources. Default: the limits.
   */
  requests?: {
    /**
     * Quantity.
     */
    [k: string]: number | string
  }
  /**
   * Resource claims (dynamic resource allocation).
   *
   * Items: A resource claim of the pod.
   */
  claims?: {
    /**
     * Name of the claim.
     */
    name: string
    /**
     * Request within the claim. Default: all of it.
     */
    request?: string
  }[]
}
/**
 * Not used: problems are reported in the conditions of GatewayClass and Gateway.
 */
export interface ProxyParametersStatus {}
/**
 * Destination: a Service (the default kind, with `port`) or a ProxyBackend (`group: proxy.dev`, `kind: ProxyBackend`). A reference that does not resolve is reported in the status; the policy stays in force and treats every call as failed.
 */
export interface BackendObjectReference {
  /**
   * API group of the referent: empty for a Service, `proxy.dev` for a ProxyBackend. Default: "".
   */
  group?: string
  /**
   * Kind of the referent. Default: "Service".
   */
  kind?: string
  /**
   * Name of the referent.
   */
  name: string
  /**
   * Namespace of the referent; default: that of the referring object. Another one needs a ReferenceGrant there for both kinds.
   */
  namespace?: string
  /**
   * Port of the Service. Required for a Service; a ProxyBackend has its own.
   */
  port?: number
}
/**
 * A ProxyBackend with `ai` (the default kind), a Service (with `port`) or an InferencePool. Services and pools implement the API of OpenAI.
 */
export interface AIModelBackendReference {
  /**
   * API group of the referent; default: that of its kind.
   */
  group?: string
  /**
   * Kind of the referent. Default: "ProxyBackend".
   */
  kind?: 'ProxyBackend' | 'Service' | 'InferencePool'
  /**
   * Name of the referent.
   */
  name: string
  /**
   * Namespace of the referent; default: that of this object. Another one needs a ReferenceGrant there.
   */
  namespace?: string
  /**
   * Port of the Service.
   */
  port?: number
}
/**
 * A Secret in the namespace of the referring object. A Secret that is missing or lacks the required entry is reported in the status, and features that need it reject all requests.
 */
export interface SecretReference {
  /**
   * Name of the Secret.
   */
  name: string
}
/**
 * A ConfigMap in the namespace of the referring object, with PEM certificates under the key `ca.crt`. If it is missing or contains no certificate, connections fail.
 */
export interface ConfigMapReference {
  /**
   * Name of the ConfigMap.
   */
  name: string
}
/**
 * Selects Secrets in the namespace of the policy by their labels.
 */
export interface SecretSelector {
  /**
   * Labels that a Secret must all have.
   */
  matchLabels: {
    /**
     * Label value.
     */
    [k: string]: string
  }
}
/**
 * Kubernetes label selector: all given requirements must hold; the empty selector matches everything.
 */
export interface LabelSelector {
  /**
   * Labels that must be present with exactly these values.
   */
  matchLabels?: {
    /**
     * Label value.
     */
    [k: string]: string
  }
  /**
   * Requirements that must all hold.
   *
   * Items: One requirement.
   */
  matchExpressions?: {
    /**
     * Label key.
     */
    key: string
    /**
     * `In`, `NotIn`, `Exists` or `DoesNotExist`.
     */
    operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist'
    /**
     * Values for In and NotIn; empty for Exists and DoesNotExist.
     *
     * Items: Label value.
     */
    values?: string[]
  }[]
}
/**
 * A JSON Web Key Set that the operator fetches and sends to the data plane. Until it has been fetched once, no token is valid and the policy is PartiallyValid; after a failed refresh the last valid set stays in use.
 */
export interface RemoteJWKS {
  /**
   * Path of the key set on the identity provider, relative to its root, for example `/realms/demo/protocol/openid-connect/certs`.
   */
  jwksPath: string
  /**
   * Time between fetches. At least 5m. Default: "5m".
   */
  cacheDuration?: Duration
  /**
   * The identity provider: a Service or a static ProxyBackend. To reach it over TLS, attach a ProxyPolicy with `backend.tls` to it.
   */
  backendRef: BackendObjectReference
}
/**
 * Source of the keys that verify tokens: exactly one of remote, inline.
 */
export interface JWKS {
  remote?: RemoteJWKS
  /**
   * A JSON Web Key Set as text. One that does not parse is reported in the status, and no token is valid.
   */
  inline?: string
}
/**
 * TCP keepalive.
 */
export interface Keepalive {
  /**
   * Number of probes without a response after which the connection is closed. Default: 9.
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
