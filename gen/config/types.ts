/** Written by `make generate`. Do not edit. */
import type {
  Transformation,
  ExtProcProcessing,
  AgentExtAuthGRPC,
  AgentExtAuthHTTP,
  ExtAuthBody,
  PluginFetch,
  PluginLimits,
  BudgetLimit,
  LocalRateLimit,
  RateLimitDescriptor,
  CSRF,
  IPAllowList,
  RequestBody,
  BandwidthLimit,
  Compression,
  Decompression,
  ResponseMatch,
  ResponseRedirect,
  HTTPHeaderMatch,
  HeaderModifiers,
  HostnameRewrite,
  Timeouts,
  Retry,
  FaultInjection,
  HttpCache,
  DirectResponseHeader,
  Authorization,
  FrontendTCP,
  FrontendTLS,
  FrontendHTTP,
  ProxyProtocol,
  ResourceAdd,
  LogTracingAttributes,
  BackendTCP,
  BackendHTTP,
  CloudBManagedIdentity,
  CloudCAuth,
  Health,
  LoadBalancer,
  LlmCache,
  RouteType,
  FieldDefault,
  FieldTransformation,
  AIPromptEnrichment,
  ModelPrice,
  PromptCachingConfig,
  CustomResponse,
  Regex,
  AIModelRollout,
  AIModelRolloutState,
  LLMProvider,
  CustomProvider,
  ServerRules,
  ProviderA,
  ProviderB,
  ProviderC,
  ProviderD,
  ProviderE,
  ProviderF,
  McpView,
  McpTools,
  A2ASkill,
  DynamicForwardProxyBackend,
  CloudBackend,
  UpstreamsSpec,
  ShortString,
  TinyString,
  LongString,
  CELExpression,
  HTTPHeaderName,
  Host,
  SNI,
  Duration,
  SectionName
} from '../v1alpha1/types.ts'
export type {
  HeaderTransformation,
  Transform,
  Transformation,
  ExtProcProcessing,
  AgentExtAuthGRPC,
  AgentExtAuthHTTP,
  ExtAuthBody,
  PluginFetch,
  PluginLimits,
  BudgetLimit,
  LocalRateLimit,
  RateLimitDescriptor,
  RateLimitDescriptorEntry,
  CSRF,
  CIDR,
  IPAllowList,
  RequestBody,
  BandwidthLimit,
  Bandwidth,
  Compression,
  Decompression,
  ResponseMatch,
  ResponseHeaderMatch,
  ResponseRedirect,
  HTTPHeader,
  HTTPHeaderFilter,
  HTTPHeaderMatch,
  HeaderModifiers,
  HostnameRewrite,
  Timeouts,
  Retry,
  FaultInjection,
  FaultDelay,
  FaultAbort,
  FaultFraction,
  HttpCache,
  DirectResponseHeader,
  Authorization,
  AuthorizationPolicy,
  FrontendTCP,
  FrontendTLS,
  FrontendHTTP,
  ClientIP,
  XForwardedClientCert,
  ProxyProtocol,
  ResourceAdd,
  LogTracingAttributes,
  AttributeAdd,
  BackendTCP,
  BackendHTTP,
  CloudBManagedIdentity,
  CloudCAuth,
  Health,
  BackendEviction,
  HealthCheck,
  LoadBalancer,
  ModelServer,
  ConsistentHash,
  LlmCache,
  RouteType,
  FieldDefault,
  FieldTransformation,
  AIPromptEnrichment,
  Message,
  ModelPrice,
  PromptCachingConfig,
  CustomResponse,
  Regex,
  AIModelRollout,
  AIModelRolloutState,
  LLMProvider,
  CustomProvider,
  ServerRules,
  ProviderA,
  ProviderB,
  ProviderC,
  ProviderD,
  ProviderE,
  ProviderF,
  McpView,
  McpTools,
  McpToolOverride,
  A2ASkill,
  DynamicForwardProxyBackend,
  Destination,
  CloudBackend,
  AgentRuntime,
  UpstreamsSpec,
  ShortString,
  TinyString,
  LongString,
  CELExpression,
  HeaderName,
  HTTPHeaderName,
  Host,
  SNI,
  Duration,
  SectionName,
  Keepalive
} from '../v1alpha1/types.ts'

/**
 * Whole milliseconds; 0 turns the limit off.
 */
export type Milliseconds = number
/**
 * Ssn: US social security number. CreditCard: card number with valid check digit. CaSin: Canadian social insurance number.
 */
export type ShortPattern = 'Ssn' | 'CreditCard' | 'PhoneNumber' | 'Email' | 'CaSin'

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
 * External processing: a gRPC service (Envoy's `envoy.service.ext_proc.v3.ExternalProcessor`) sees, and may change, headers, bodies and trailers of request and response. If it fails, the request fails with 500 unless failureMode is FailOpen.
 */
export interface ExtProc {
  /**
   * The processor: a Service or a ProxyBackend.
   */
  backendRef: BackendRef
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
 * External authorization: a service decides about each request before it is forwarded. Exactly one of grpc, http. If the service cannot be reached or the reference does not resolve, the request is rejected with 403 unless failureMode is FailOpen.
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
   * Handling of requests without a decision of the service. FailClosed rejects them with 403, FailOpen forwards them. Default: "FailClosed".
   */
  failureMode?: 'FailClosed' | 'FailOpen'
  /**
   * Condition, evaluated once for each request. If it is false, this does not apply to the request. If it fails, it applies: a client cannot evade it.
   */
  when?: CELExpression
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
  configMapRef?: ResolvedPluginSource
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
  secretRef: ResolvedSecretKey
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
  backendRef: BackendRef
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
 * Limits kept by an external rate limit service (Envoy's `envoy.service.ratelimit.v3.RateLimitService`), shared by all replicas. If the service cannot be reached, requests fail with 500 unless failureMode is FailOpen.
 */
export interface GlobalRateLimit {
  /**
   * The rate limit service: a Service or a ProxyBackend.
   */
  backendRef: BackendRef
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
 * Gateway API HTTPCORSFilter.
 */
export interface CORS {
  /**
   * Origins that may read responses.
   *
   * Items: `*` or `scheme://host[:port]`; the host may start with `*.` or be `*`.
   */
  allowOrigins?: string[]
  /**
   * Sends Access-Control-Allow-Credentials: true.
   */
  allowCredentials?: boolean
  /**
   * Methods listed in preflight responses.
   *
   * Items: Method or `*`.
   */
  allowMethods?: ('GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE' | 'CONNECT' | 'OPTIONS' | 'TRACE' | 'PATCH' | '*')[]
  /**
   * Request headers listed in preflight responses.
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
   * Seconds for which a preflight response may be cached. Default: 5.
   */
  maxAge?: number
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
  bodyRef?: ResolvedText
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
 * Responds with the public keys of a Secret as a JSON Web Key Set, which clients may keep for 5 minutes: for the tokens of `backend.auth.jwtSign`.
 */
export interface KeySetResponse {
  /**
   * Secret with the entry `key`, and optionally `nextKey` and `previousKey`: private keys in PEM. If `key` is not usable: 500.
   */
  secretRef: ResolvedSecret
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
  backendRef: BackendRef
  /**
   * Path, for example `/realms/demo/protocol/openid-connect/token/introspect`.
   */
  path: string
  /**
   * Secret with the entries `clientId` and `clientSecret`: the gateway at the authorization server.
   */
  secretRef: ResolvedSecret
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
  secretRef?: ResolvedSecret
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
  secretRef?: ResolvedSecret
  /**
   * Selects several Secrets whose entries are API keys. The same key in several of them is undefined behavior. If none matches, all requests are rejected, unless mode is Permissive.
   */
  secretSelector?: ResolvedSecrets
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
  backendRef: BackendRef
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
  secretRef?: ResolvedSecret
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
  backendRef?: BackendRef
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
   * Whether a request without a trace starts one: a boolean, or a probability from 0.0 to 1.0. A failure counts as false. Not set: never.
   */
  randomSampling?: CELExpression
  /**
   * Whether a request that is part of a trace gets a span: a boolean, or a probability. A failure counts as false. Not set: always.
   */
  clientSampling?: CELExpression
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
 * Reaches the backend through an HTTP proxy, by CONNECT.
 */
export interface BackendTunnel {
  /**
   * The proxy server to reach: a Service or a ProxyBackend.
   */
  backendRef: BackendRef
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
  mtlsCertificateRef?: ResolvedSecret[]
  /**
   * CA certificates that verify the server; default: those of the system. If missing, connections fail.
   *
   * @maxItems 1
   */
  caCertificateRefs?: ResolvedSecret[]
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
  secretRef?: ResolvedSecret
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
  secretRef: ResolvedSecret
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
    backendRef: BackendRef
    /**
     * Path, for example `/realms/demo/protocol/openid-connect/token`.
     */
    path: string
  }
  /**
   * Secret with entries `clientId` and `clientSecret`. Required with ClientCredentials; default: no client authentication.
   */
  secretRef?: ResolvedSecret
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
  secretRef?: ResolvedSecret
}
/**
 * Microsoft Azure: an access token of Microsoft Entra ID; exactly one of secretRef, managedIdentity.
 */
export interface CloudBAuth {
  /**
   * Secret with entries `clientId`, `tenantId` and `clientSecret`.
   */
  secretRef?: ResolvedSecret
  managedIdentity?: CloudBManagedIdentity
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
 * Prices of models that `prices` does not name, in US dollars.
 */
export interface PriceCatalog {
  configMapRef?: ResolvedPriceCatalog
  /**
   * Prices that are part of the product, of models that the ConfigMap does not name. Default: "Enabled".
   */
  builtIn?: 'Enabled' | 'Disabled'
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
 * Calls a webhook over HTTP.
 */
export interface Webhook {
  /**
   * The service: a Service or a ProxyBackend.
   */
  backendRef: BackendRef
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
  jwks: ResolvedKeySet
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
  backendRef: BackendRef
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
  backendRef: BackendRef
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
  toolPins?: ResolvedMcpToolPins
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
 * One or more MCP servers: exactly one of selector, static, command. With openapi or grpc, a service of another kind: at static, or at the Service of its backendRef.
 */
export interface McpTargetSelector {
  /**
   * Name, unique in the backend; a policy can target it by `sectionName`.
   */
  name: SectionName
  selector?: ResolvedMcpTargets
  static?: McpTarget
  tools?: McpTools
  openapi?: ResolvedMcpOpenApi
  grpc?: ResolvedMcpGrpc
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
   * Whether command gets the environment of the data plane, too; `env` takes precedence. Default: false.
   */
  inheritEnv?: boolean
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
  secretRef?: ResolvedSecret
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
 * Source of the keys that verify tokens: exactly one of remote, inline.
 */
export interface JWKS {
  remote?: ResolvedKeySet
  /**
   * A JSON Web Key Set as text. One that does not parse is reported in the status, and no token is valid.
   */
  inline?: string
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
   * Why the reference does not resolve, for logs. Features that need it fail closed.
   */
  invalid?: string
}
/**
 * An entry of a Secret: exactly one of secret, invalid.
 */
export interface ResolvedSecretKey {
  /**
   * Key of a Secret message of type opaque.
   */
  secret?: string
  /**
   * Entry of the Secret.
   */
  key?: string
  /**
   * Why the reference does not resolve, for logs. Features that need it fail closed.
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
 * The source of a plugin: exactly one of code, invalid.
 */
export interface ResolvedPluginSource {
  /**
   * TypeScript or JavaScript.
   */
  code?: string
  /**
   * Name of the source in error messages: `<namespace>/<ConfigMap>/<key>`.
   */
  file?: string
  /**
   * `<namespace>/<name>` of the policy.
   */
  owner?: string
  /**
   * SHA-256 of the code, in hex.
   */
  digest?: string
  /**
   * Whether a permission is missing. A version that ran before ends. Only with invalid.
   */
  denied?: boolean
  /**
   * Why the reference does not resolve, for logs. Features that need it fail closed.
   */
  invalid?: string
}
/**
 * A text of a ConfigMap: exactly one of text, invalid.
 */
export interface ResolvedText {
  /**
   * The text.
   */
  text?: string
  /**
   * Why the reference does not resolve, for logs. Features that need it fail closed.
   */
  invalid?: string
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
   * Why the reference does not resolve, for logs. Features that need it fail closed.
   */
  invalid?: string
  /**
   * Backend that it was fetched from; MCP authentication fetches other documents from there.
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
    /**
     * Whether clients without sessions get one of the gateway, whatever the server speaks. Default: false.
     */
    sessionsOnly?: boolean
  }[]
}
/**
 * Pins of the tools of an MCP backend.
 */
export interface ResolvedMcpToolPins {
  /**
   * The document of pins, in JSON. Default: no pins.
   */
  pins?: string
  /**
   * Handling of new and changed tools.
   */
  action: 'Audit' | 'Hold' | 'Block'
  /**
   * Why there are no pins, for logs. No tool is approved.
   */
  invalid?: string
}
/**
 * A gRPC server as an MCP server: unary methods become tools.
 */
export interface ResolvedMcpGrpc {
  /**
   * Where calls go. Absent: to `static` of the target.
   */
  backend?: BackendRef
  /**
   * The descriptor set (google.protobuf.FileDescriptorSet) in base64. Absent: the reflection service of the server.
   */
  descriptors?: string
  /**
   * Methods that become tools. Default: all.
   *
   * Items: Pattern of `package.Service/Method`; `*` is any text.
   */
  include?: string[]
  /**
   * Methods that become no tools, though they match include.
   *
   * Items: Pattern as in include.
   */
  exclude?: string[]
  /**
   * Why the descriptor set is unusable, for logs. The target has no tools.
   */
  invalid?: string
}
/**
 * An HTTP API as an MCP server: its operations as tools, compiled from an OpenAPI document.
 */
export interface ResolvedMcpOpenApi {
  /**
   * Where requests go. Absent: to `static` of the target.
   */
  backend?: BackendRef
  /**
   * Title of the API.
   */
  title: string
  /**
   * Version of the document.
   */
  version: string
  /**
   * Description of the API, for clients.
   */
  instructions?: string
  /**
   * Base path of the API, without a trailing slash.
   */
  path: string
  /**
   * Computes the result of a successful call. Output schemas of the tools do not apply.
   */
  response?: CELExpression
  /**
   * Tools, in the order of the document.
   */
  tools: OpenApiTool[]
  /**
   * Why the document is unusable, for logs. The target has no tools.
   */
  invalid?: string
}
/**
 * An operation as a tool.
 */
export interface OpenApiTool {
  /**
   * Name, unique in the target.
   */
  name: string
  /**
   * The tool as in a list of tools, in JSON.
   */
  definition: string
  /**
   * Method of the request.
   */
  method: 'GET' | 'PUT' | 'POST' | 'DELETE' | 'PATCH'
  /**
   * Path template below the base path, with parameters in braces.
   */
  path: string
  /**
   * Parameters of path, query and headers.
   */
  parameters: OpenApiParameter[]
  body?: OpenApiBody
}
/**
 * A parameter of an operation.
 */
export interface OpenApiParameter {
  /**
   * Argument of the tool.
   */
  argument: string
  /**
   * Name in the request.
   */
  name: string
  /**
   * Part of the request.
   */
  in: 'path' | 'query' | 'header'
  /**
   * Serialization of arrays and objects (OpenAPI 3.1, style values).
   */
  style: 'simple' | 'label' | 'matrix' | 'form' | 'spaceDelimited' | 'pipeDelimited' | 'deepObject'
  /**
   * Separate values for the items of an array and the members of an object.
   */
  explode: boolean
  /**
   * Reserved characters that cannot begin another parameter are not percent-encoded.
   */
  allowReserved?: boolean
  /**
   * The value is sent as JSON; style does not apply.
   */
  isJson?: boolean
}
/**
 * The body of an operation.
 */
export interface OpenApiBody {
  /**
   * Argument of the tool.
   */
  argument: string
  /**
   * Content type of the request.
   */
  mediaType: string
  /**
   * How the argument is written.
   */
  kind: 'json' | 'form' | 'text'
  /**
   * Of forms. Default: form, exploded.
   *
   * Items: Encoding of a field of a form.
   */
  encoding?: {
    /**
     * Field.
     */
    name: string
    /**
     * Serialization of arrays and objects (OpenAPI 3.1, style values).
     */
    style: 'simple' | 'label' | 'matrix' | 'form' | 'spaceDelimited' | 'pipeDelimited' | 'deepObject'
    /**
     * Separate values for the items of an array and the members of an object.
     */
    explode: boolean
  }[]
}
/**
 * A price catalog: exactly one of providers, invalid.
 */
export interface ResolvedPriceCatalog {
  /**
   * Models by provider, as in `gen_ai.provider.name`.
   */
  providers?: {
    [k: string]: CatalogProvider
  }
  /**
   * Why the catalog is unusable, for logs. It has no prices then.
   */
  invalid?: string
}
/**
 * Models of a provider.
 */
export interface CatalogProvider {
  /**
   * Models by name; `*` matches any text.
   */
  models: {
    [k: string]: CatalogModel
  }
}
/**
 * Prices of a model.
 */
export interface CatalogModel {
  rates: CatalogRates
  /**
   * By contextOver, increasing.
   */
  tiers?: CatalogTier[]
  /**
   * Prices by the service tier that the response names.
   */
  serviceTiers?: {
    [k: string]: CatalogServiceTier
  }
  /**
   * What the model can do.
   *
   * Items: Tag.
   */
  tags?: string[]
  capabilities?: ModelCapabilities
  /**
   * Tokens of the longest input.
   */
  contextWindow?: number
  /**
   * Tokens of the longest output.
   */
  maxOutput?: number
  /**
   * Where the prices come from.
   */
  source?: string
  /**
   * Day of the last change, YYYY-MM-DD.
   */
  date?: string
}
/**
 * What a model accepts, where the rules of its family do not hold.
 */
export interface ModelCapabilities {
  /**
   * Id of a model whose rules hold.
   */
  family?: string
  /**
   * How the model reasons: not, by an effort, or with a budget of tokens.
   */
  reasoning?: 'None' | 'Effort' | 'Budget'
  /**
   * Values of the effort, in rising order.
   *
   * Items: Effort.
   */
  efforts?: string[]
  /**
   * Whether sampling parameters are accepted: always, never, or only while the model does not reason.
   */
  sampling?: 'Any' | 'Fixed' | 'FixedWhileReasoning'
  /**
   * Highest temperature.
   */
  maxTemperature?: number
  /**
   * Field of the token limit of Chat Completions.
   */
  tokenLimit?: 'max_tokens' | 'max_completion_tokens'
  /**
   * Whether requests may have tools.
   */
  tools?: boolean
  /**
   * Whether requests may have images.
   */
  images?: boolean
}
/**
 * Prices of a service tier.
 */
export interface CatalogServiceTier {
  rates: CatalogTierRates
  /**
   * By contextOver, increasing. They replace those of the model.
   */
  tiers?: CatalogTier[]
}
/**
 * Prices of requests with a larger context.
 */
export interface CatalogTier {
  /**
   * Input tokens above which the prices apply.
   */
  contextOver: number
  rates: CatalogTierRates
}
/**
 * US dollars per million tokens, search units, images, seconds or characters.
 */
export interface CatalogRates {
  /**
   * Price.
   */
  input: string
  /**
   * Price.
   */
  output: string
  /**
   * Price.
   */
  cacheRead?: string
  /**
   * Price.
   */
  cacheWrite?: string
  /**
   * Price.
   */
  reasoning?: string
  /**
   * Price.
   */
  inputAudio?: string
  /**
   * Price.
   */
  outputAudio?: string
  /**
   * Price.
   */
  inputImage?: string
  /**
   * Price.
   */
  outputImage?: string
  /**
   * Price.
   */
  searches?: string
  /**
   * Price.
   */
  images?: string
  /**
   * Price.
   */
  seconds?: string
  /**
   * Price.
   */
  characters?: string
}
/**
 * US dollars per million tokens, where they differ.
 */
export interface CatalogTierRates {
  /**
   * Price.
   */
  input?: string
  /**
   * Price.
   */
  output?: string
  /**
   * Price.
   */
  cacheRead?: string
  /**
   * Price.
   */
  cacheWrite?: string
  /**
   * Price.
   */
  reasoning?: string
  /**
   * Price.
   */
  inputAudio?: string
  /**
   * Price.
   */
  outputAudio?: string
  /**
   * Price.
   */
  inputImage?: string
  /**
   * Price.
   */
  outputImage?: string
  /**
   * Price.
   */
  searches?: string
  /**
   * Price.
   */
  images?: string
  /**
   * Price.
   */
  seconds?: string
  /**
   * Price.
   */
  characters?: string
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
  /**
   * Whether plugins with isolation InProcess may run. Equal for all listeners of a Gateway. Default false.
   */
  inProcessPlugins?: boolean
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
   * TLS options of the listener, as written; none has an effect.
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
   * CA certificates. If none of the keys resolves, every handshake fails.
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
 * The source route and rule of a message, for logs and metrics.
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
   * Creation time of the route (RFC 3339). Of equal matches, the oldest route is used, then the lowest `namespace/name`, then the first rule.
   */
  creationTimestamp?: string
  /**
   * Field of the short form of a config file that the rule is made from, such as `llm.models.gpt-4o`. For the console; absent for others.
   */
  origin?: string
  /**
   * Hostnames of the route, as written; the data plane intersects them with each listener. Absent matches every host of the listener.
   *
   * Items: Exact or `*.` hostname, lower case.
   */
  hostnames?: string[]
  /**
   * Alternatives, one of which must match. Not set: all requests.
   */
  matches?: RouteMatch[]
  filters?: RouteFilters
  timeouts?: RouteTimeouts
  retry?: RouteRetry
  sessionPersistence?: SessionPersistence
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
 * Responds with a redirect instead of forwarding.
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
 * Rewrites the request to the upstream.
 */
export interface UrlRewrite {
  /**
   * Replaces the authority and turns automatic host rewriting off.
   */
  hostname?: string
  path?: PathModifier
}
/**
 * Sends a copy of the request head to another backend, whose response is discarded.
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
   * Set if the rule is invalid: every matching request gets 500 `failed to apply filters: <this text>`.
   */
  invalid?: string
}
/**
 * An ExternalAuth filter: a policy, and settings that only the filter has.
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
   * The call to an HTTP server has the Host of the request.
   */
  isHostSent?: boolean
  /**
   * All headers of the response of an HTTP server are copied to the request, except those about framing.
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
 * Requests of a client go to one endpoint (GEP-1619). The token of a session is encrypted.
 */
export interface SessionPersistence {
  /**
   * Where the token is: a cookie, or a header of responses that the client sends back.
   */
  type: 'Cookie' | 'Header'
  /**
   * Name of the cookie or header.
   */
  name: string
  /**
   * Path of the cookie. Default: "/".
   */
  path?: string
  /**
   * The cookie outlives the session of the browser, up to absoluteTimeoutMs.
   */
  isPermanent?: boolean
  /**
   * A session ends after this time. Default: never.
   */
  absoluteTimeoutMs?: Milliseconds
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
   * Share of the requests among the backends of the rule; 0: no requests. Default: 1.
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
 * The endpoint picker of an InferencePool: an ext_proc service that selects an endpoint for each request (Endpoint Picker Protocol 1.0).
 */
export interface EndpointPicker {
  backend: BackendRef
  /**
   * If the picker cannot be reached: FailOpen balances over the endpoints, FailClose responds with 503. Default: "FailClose".
   */
  failureMode?: 'FailOpen' | 'FailClose'
  /**
   * Called without TLS. Otherwise with TLS, without verification of the certificate unless a policy on the Service configures it.
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
   * Protocol of the endpoints, from appProtocol. Selects the HTTP version unless a policy does. A2A: agents, whose cards are rewritten.
   */
  appProtocol?: 'HTTP11' | 'HTTP2' | 'GRPC' | 'WS' | 'TCP' | 'TLS' | 'A2A'
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
  dynamicForwardProxy?: DynamicForwardProxyBackend
  ai?: AIBackend
  /**
   * State of the rollouts of the models. The gateway sets it.
   */
  rollouts?: AIModelRolloutState[]
  mcp?: MCPBackend
  cloudBackend?: CloudBackend
  a2a?: A2ABackend
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
 * One section of one ProxyPolicy, or the content of a BackendTLSPolicy, for one target.
 */
export interface Policy {
  /**
   * Unique among its kind. Shape: `<section>/<namespace>/<name>:<target index>`.
   */
  key: string
  /**
   * The source object, for statuses, logs and `proxyctl explain`.
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
  /**
   * Address and port of models and MCP servers: `127.0.0.1:4000`, `[::1]:4000`, `localhost`, `0.0.0.0` or `*:4000`. With both, MCP servers are at the path `/mcp`. Default: a port for each, and addresses as `addresses` of a bind.
   */
  listen?: string
  https?: ShortHttps
  /**
   * Clients of all ports of the file, by name. Other requests get 401.
   */
  keys?: {
    [k: string]: ShortKey
  }
  guardrails?: ShortGuardrails
  /**
   * Models by the name that clients use.
   */
  models?: {
    [k: string]: ShortLLMModel
  }
  mcp?: ShortMCP
  /**
   * Format of the log, as `config.logging.format`. Default: text.
   */
  log?: 'json' | 'text'
  /**
   * SQLite file of the request log, as `config.ledger.sqlite.path`: a path relative to the config file.
   */
  ledger?: string
  llm?: ShortLLM
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
   * Policies with their targets, as the xDS stream carries them.
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
   * Admin endpoint, `host:port`; default 127.0.0.1:15000. Environment: ADMIN_ADDR.
   */
  adminAddr?: string
  /**
   * Metrics endpoint, `host:port`; default `[::]:15020`, all addresses of both families. Environment: STATS_ADDR.
   */
  statsAddr?: string
  /**
   * Readiness endpoint, `host:port`; default `[::]:15021`, all addresses of both families. Environment: READINESS_ADDR.
   */
  readinessAddr?: string
  /**
   * Operator with the xDS stream, `http://host:port` or `https://host:port`. Environment: XDS_ADDRESS.
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
   * Threads that handle traffic; default: the CPU limit of the container, without one the cores of the machine, at most 8. Environment: WORKERS, which may also be `auto` for the default.
   */
  workers?: number
  /**
   * Duration after which connections that are still open at shutdown are closed. Environment: TERMINATION_GRACE_PERIOD_SECONDS.
   */
  connectionTerminationDeadline?: string
  ledger?: LedgerConfig
  /**
   * Where the counters of budgets are kept. Not set: they are lost when the process ends.
   */
  budgets?: {
    /**
     * A SQLite file of this process alone: budgets with scope Replica, and all budgets without an operator, continue after a restart. Written each second; a crash loses at most what was spent in that time.
     */
    sqlite?: {
      /**
       * Absolute path of the file; it is created if it does not exist. Its directory must be writable.
       */
      path: string
    }
  }
  /**
   * Where the state of the rollouts of models is kept. Not set: they begin anew when the process starts.
   */
  rollouts?: {
    /**
     * Absolute path of a JSON file of this process alone; it is created if it does not exist. Its directory must be writable.
     */
    path?: string
  }
  redis?: RedisConfig
  postgres?: PostgresConfig
  upstreams?: UpstreamsSpec
  /**
   * The management port.
   */
  management?: {
    /**
     * Whether the console may change this file. Default: true, and false in pods. Never with XDS_ADDRESS, or on other addresses than loopback without ADMIN_TOKEN.
     */
    edits?: boolean
  }
  /**
   * Permissions of plugins.
   */
  plugins?: {
    /**
     * Whether plugins with isolation InProcess may run; default false.
     */
    inProcess?: boolean
  }
}
/**
 * Records each LLM and MCP request, and a sample of the others, in a database: who used which model, tokens, cost, latency and status. Not set: nothing is recorded.
 */
export interface LedgerConfig {
  /**
   * The store: a SQLite file that this process writes. One of `sqlite`, `postgres` and `clickhouse` is required.
   */
  sqlite?: {
    /**
     * Absolute path of the file; it is created if it does not exist. Its directory must be writable.
     */
    path: string
  }
  /**
   * The store: a PostgreSQL database that several processes share. One of `sqlite`, `postgres` and `clickhouse` is required.
   */
  postgres?: {
    /**
     * `postgres://USER@HOST:PORT/DATABASE`. `?sslmode=disable` connects without TLS; otherwise the certificate is verified.
     */
    url: string
    /**
     * Absolute path of a file with the password of the user. It is read for each connection.
     */
    passwordFile?: string
    /**
     * Absolute path of a file with PEM certificates that the certificate of the server is verified with. Default: those of Node.
     */
    caFile?: string
    /**
     * Name that records and reports of this process have in the database. Default: namespace and name of the Gateway.
     */
    owner?: string
  }
  /**
   * The store: a ClickHouse database that several processes share, by its HTTP interface. One of `sqlite`, `postgres` and `clickhouse` is required.
   */
  clickhouse?: {
    /**
     * `https://USER@HOST:PORT/DATABASE`, port 8443 by default, or `http://` without TLS, port 8123 by default.
     */
    url: string
    /**
     * Absolute path of a file with the password of the user. It is read for each connection.
     */
    passwordFile?: string
    /**
     * Absolute path of a file with PEM certificates that the certificate of the server is verified with. Default: those of Node.
     */
    caFile?: string
    /**
     * Name that records and reports of this process have in the database. Default: namespace and name of the Gateway.
     */
    owner?: string
  }
  /**
   * Age at which records are deleted, at least 1m. Default: 2160h, 90 days.
   */
  retention?: string
  /**
   * Share of the requests that are recorded of those that are neither LLM nor MCP. Reports extrapolate. Default: 0.
   */
  httpSampling?: number
  /**
   * Stores the bodies of LLM chat requests and their responses, as prompt guards and plugins let them through: requests as sent to the provider, streams as one response. Not set: no bodies are stored.
   */
  bodies?: {
    /**
     * Bytes of the longest body; longer ones are cut. Default: 16384.
     */
    maxBytes?: number
    /**
     * Stores arguments and results of MCP tools, too, as tool guards and plugins let them through; default false.
     */
    tools?: boolean
  }
  /**
   * CEL expression of the user of a request; null and errors: none. Bodies are not available. Default: `coalesce(jwt.sub, basicAuth.username)`.
   */
  user?: string
  /**
   * CEL expression of the team of a request. Default: `coalesce(apiKey.metadata.team, jwt.team)`.
   */
  team?: string
}
/**
 * A Redis server for caches and budgets with `store: Redis`. Not set: caches store in memory, and `onDisconnect` of these budgets decides.
 */
export interface RedisConfig {
  /**
   * `redis://USER@HOST:PORT/DATABASE`, user and database optional; `rediss://` connects with TLS and verifies the certificate.
   */
  url: string
  /**
   * Absolute path of a file with the password. It is read for each connection.
   */
  passwordFile?: string
  /**
   * Absolute path of a file with PEM certificates that the certificate of the server is verified with. Default: those of Node.
   */
  caFile?: string
}
/**
 * A PostgreSQL database for budgets with `store: Postgres`. Tables and functions, whose names begin with `proxy_budget`, are created. Not set: `onDisconnect` of these budgets decides.
 */
export interface PostgresConfig {
  /**
   * `postgres://USER@HOST:PORT/DATABASE`. `?sslmode=disable` connects without TLS; otherwise the certificate is verified.
   */
  url: string
  /**
   * Absolute path of a file with the password of the user. It is read for each connection.
   */
  passwordFile?: string
  /**
   * Absolute path of a file with PEM certificates that the certificate of the server is verified with. Default: those of Node.
   */
  caFile?: string
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
   * Default: loopback, or all if policies or tls.clientCa of all listeners demand that clients authenticate. An empty list: all.
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
   * Exact or `*.` hostname, lower case; default: any.
   */
  hostname?: string
  /**
   * Default: HTTPS when tls is given, TCP when only tcpRoutes are, else HTTP.
   */
  protocol?: 'HTTP' | 'HTTPS' | 'TLS' | 'TCP'
  tls?: FileTls
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
 * TLS. Paths are relative to the file.
 */
export interface FileTls {
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
   * Items: Exact or `*.` hostname, lower case.
   */
  hostnames?: string[]
  /**
   * Default: every path.
   */
  matches?: RouteMatch[]
  filters?: RouteFilters
  timeouts?: FileTimeouts
  retry?: FileRetry
  sessionPersistence?: SessionPersistence
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
 * Timeouts of a route. `request` and `requestMs` are two forms of one field, as are `backendRequest` and `backendRequestMs`.
 */
export interface FileTimeouts {
  /**
   * Whole response, body included, from receipt of the request head; covers retries and backoff. `0s` turns the limit off.
   */
  request?: string
  /**
   * One attempt, until the response head. `0s` turns the limit off.
   */
  backendRequest?: string
  /**
   * As request, in milliseconds.
   */
  requestMs?: Milliseconds
  /**
   * As backendRequest, in milliseconds.
   */
  backendRequestMs?: Milliseconds
}
/**
 * Retries of a route. `backoff` and `backoffMs` are two forms of one field.
 */
export interface FileRetry {
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
  backoff?: string
  /**
   * As backoff, in milliseconds.
   */
  backoffMs?: Milliseconds
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
   * Items: SNI: exact or `*.` hostname, lower case.
   */
  hostnames?: string[]
  /**
   * Destinations.
   */
  backends?: FileWeightedBackend[]
}
/**
 * A destination: exactly one of host, service, backend, dynamicForwardProxy, ai, mcp, cloudBackend, a2a.
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
  dynamicForwardProxy?: DynamicForwardProxyBackend
  ai?: AIBackend
  mcp?: MCPBackend
  cloudBackend?: CloudBackend
  a2a?: A2ABackend
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
  dynamicForwardProxy?: DynamicForwardProxyBackend
  ai?: AIBackend
  mcp?: MCPBackend
  cloudBackend?: CloudBackend
  a2a?: A2ABackend
  policies?: BackendFull
}
/**
 * LLM models on one port. Clients choose a model by the field `model` of their requests.
 */
export interface ShortLLM {
  /**
   * TCP port. Default: 4000.
   */
  port?: number
  /**
   * Addresses to listen on. Default: loopback, or all if policies or tls.clientCa demand that clients authenticate. An empty list: all.
   *
   * Items: IP address.
   */
  addresses?: string[]
  /**
   * Address and port in one text, in place of addresses and port: `127.0.0.1:4000`, `[::1]:4000`, `0.0.0.0` or `*:4000`.
   */
  listen?: string
  tls?: FileTls
  /**
   * Models by the name that clients use.
   */
  models: {
    [k: string]: ShortLLMModel
  }
  /**
   * Traffic policies of all models.
   */
  policies?: Traffic
}
/**
 * A model: exactly one of openai, azureOpenAI, anthropic, gemini, vertexAI, bedrock, of their neutral names providerA to providerF, preset, custom, providers, to, rules.
 */
export interface ShortLLMModel {
  /**
   * Targets of all requests.
   *
   * @minItems 1
   * @maxItems 16
   */
  to?: ShortModelTarget[]
  /**
   * Targets by condition: the first rule that matches. If none does, the model does not exist for the request: 404.
   *
   * @minItems 1
   * @maxItems 16
   */
  rules?: ShortModelRule[]
  /**
   * Targets for requests whose target failed before the first content, in order.
   *
   * @minItems 1
   * @maxItems 8
   */
  fallback?: ShortModelFallback[]
  shadow?: ShortModelShadow
  /**
   * Another name of to.
   *
   * @minItems 1
   * @maxItems 16
   */
  providers?: ShortModelTarget[]
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
  openai?: ShortProviderA
  /**
   * Neutral name of openai.
   */
  providerA?: ShortProviderA
  azureOpenAI?: ShortProviderB
  /**
   * Neutral name of azureOpenAI.
   */
  providerB?: ShortProviderB
  anthropic?: ShortProviderC
  /**
   * Neutral name of anthropic.
   */
  providerC?: ShortProviderC
  gemini?: ShortProviderD
  /**
   * Neutral name of gemini.
   */
  providerD?: ShortProviderD
  vertexAI?: ShortProviderE
  /**
   * Neutral name of vertexAI.
   */
  providerE?: ShortProviderE
  bedrock?: ShortProviderF
  /**
   * Neutral name of bedrock.
   */
  providerF?: ShortProviderF
  preset?: ShortPreset
  custom?: ShortCustom
  /**
   * Policies of this model.
   */
  policies?: BackendWithAI
}
/**
 * A rule of a model.
 */
export interface ShortModelRule {
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
  to: ShortModelTarget[]
  rollout?: AIModelRollout
}
/**
 * What serves requests whose target failed: exactly one of to, model, a provider.
 */
export interface ShortModelFallback {
  /**
   * Name of another model of the file.
   */
  model?: string
  openai?: ShortProviderA
  /**
   * Neutral name of openai.
   */
  providerA?: ShortProviderA
  azureOpenAI?: ShortProviderB
  /**
   * Neutral name of azureOpenAI.
   */
  providerB?: ShortProviderB
  anthropic?: ShortProviderC
  /**
   * Neutral name of anthropic.
   */
  providerC?: ShortProviderC
  gemini?: ShortProviderD
  /**
   * Neutral name of gemini.
   */
  providerD?: ShortProviderD
  vertexAI?: ShortProviderE
  /**
   * Neutral name of vertexAI.
   */
  providerE?: ShortProviderE
  bedrock?: ShortProviderF
  /**
   * Neutral name of bedrock.
   */
  providerF?: ShortProviderF
  preset?: ShortPreset
  custom?: ShortCustom
  /**
   * Policies of this provider, in addition to those of the model. Not with model.
   */
  policies?: BackendWithAI
  /**
   * Causes.
   *
   * @minItems 1
   * @maxItems 12
   *
   * Items: Cause.
   */
  on?: (
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
  to?: ShortModelTarget[]
}
/**
 * What serves a model: another model of the file, or a provider.
 */
export interface ShortModelTarget {
  /**
   * Name of another model of the file.
   */
  model?: string
  openai?: ShortProviderA
  /**
   * Neutral name of openai.
   */
  providerA?: ShortProviderA
  azureOpenAI?: ShortProviderB
  /**
   * Neutral name of azureOpenAI.
   */
  providerB?: ShortProviderB
  anthropic?: ShortProviderC
  /**
   * Neutral name of anthropic.
   */
  providerC?: ShortProviderC
  gemini?: ShortProviderD
  /**
   * Neutral name of gemini.
   */
  providerD?: ShortProviderD
  vertexAI?: ShortProviderE
  /**
   * Neutral name of vertexAI.
   */
  providerE?: ShortProviderE
  bedrock?: ShortProviderF
  /**
   * Neutral name of bedrock.
   */
  providerF?: ShortProviderF
  preset?: ShortPreset
  custom?: ShortCustom
  /**
   * Policies of this provider, in addition to those of the model. Not with model.
   */
  policies?: BackendWithAI
  /**
   * Share of the requests, relative to the other targets; 0: none. Default: 1.
   */
  weight?: number
}
/**
 * Another model of the file.
 */
export interface ShortModelCopy {
  /**
   * Name of another model of the file.
   */
  model: string
}
/**
 * Copies of chats go to another model, whose responses are compared and discarded.
 */
export interface ShortModelShadow {
  to: ShortModelCopy
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
  judge?: ShortModelJudge
}
/**
 * A model that judges which response is better. The budget of the shadow pays it.
 */
export interface ShortModelJudge {
  to: ShortModelCopy
  /**
   * What makes a response better, for the judge.
   */
  rubric: string
}
/**
 * OpenAI.
 */
export interface ShortProviderA {
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
  /**
   * API key of the provider, sent in the way the provider requires. Usually a placeholder such as `${OPENAI_API_KEY}`.
   */
  apiKey?: string
  /**
   * Base URL of a server that implements the API of OpenAI, as its SDK takes it: `http://localhost:11434/v1`. Default: `https://api.openai.com/v1`.
   */
  url?: string
}
/**
 * Azure OpenAI.
 */
export interface ShortProviderB {
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
  /**
   * API key of the provider, sent in the way the provider requires. Usually a placeholder such as `${OPENAI_API_KEY}`.
   */
  apiKey?: string
  /**
   * Base URL to use instead of the host of the provider: `http://` or `https://`. Its path is put in front of the paths of the provider.
   */
  url?: string
}
/**
 * Anthropic.
 */
export interface ShortProviderC {
  /**
   * Model to use instead of that of the request. Not set: that of the request.
   */
  model?: ShortString
  /**
   * API key of the provider, sent in the way the provider requires. Usually a placeholder such as `${OPENAI_API_KEY}`.
   */
  apiKey?: string
  /**
   * Base URL to use instead of the host of the provider: `http://` or `https://`. Its path is put in front of the paths of the provider.
   */
  url?: string
}
/**
 * Google Gemini.
 */
export interface ShortProviderD {
  /**
   * Model to use instead of that of the request. Not set: that of the request.
   */
  model?: ShortString
  /**
   * API key of the provider, sent in the way the provider requires. Usually a placeholder such as `${OPENAI_API_KEY}`.
   */
  apiKey?: string
  /**
   * Base URL to use instead of the host of the provider: `http://` or `https://`. Its path is put in front of the paths of the provider.
   */
  url?: string
}
/**
 * Google Vertex AI.
 */
export interface ShortProviderE {
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
  /**
   * API key of the provider, sent in the way the provider requires. Usually a placeholder such as `${OPENAI_API_KEY}`.
   */
  apiKey?: string
  /**
   * Base URL to use instead of the host of the provider: `http://` or `https://`. Its path is put in front of the paths of the provider.
   */
  url?: string
}
/**
 * Amazon Bedrock.
 */
export interface ShortProviderF {
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
  /**
   * API key of the provider, sent in the way the provider requires. Usually a placeholder such as `${OPENAI_API_KEY}`.
   */
  apiKey?: string
  /**
   * Base URL to use instead of the host of the provider: `http://` or `https://`. Its path is put in front of the paths of the provider.
   */
  url?: string
  /**
   * AWS access key; needs secretAccessKey. Without it and apiKey, the default credential chain is used.
   */
  accessKeyId?: string
  /**
   * AWS secret key.
   */
  secretAccessKey?: string
  /**
   * AWS session token.
   */
  sessionToken?: string
}
/**
 * A provider by its name.
 */
export interface ShortPreset {
  /**
   * A provider whose host, paths, APIs and peculiarities are known. Servers of your own: databricks, ollama, vllm, sglang, llamacpp, lmstudio, tgi.
   */
  name:
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
   * Model to use instead of that of the request. Not set: that of the request.
   */
  model?: ShortString
  /**
   * API key of the provider, sent in the way the provider requires. Usually a placeholder such as `${OPENAI_API_KEY}`.
   */
  apiKey?: string
  /**
   * Base URL, as SDKs take it: `http://localhost:11434/v1`. Default: that of the provider, or the usual port of localhost.
   */
  url?: string
}
/**
 * A provider that has no preset.
 */
export interface ShortCustom {
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
  /**
   * API key of the provider, sent in the way the provider requires. Usually a placeholder such as `${OPENAI_API_KEY}`.
   */
  apiKey?: string
}
/**
 * MCP servers on one port, merged into one server: every field is a server by its name, except those listed here.
 */
export interface ShortMCP {
  /**
   * TCP port. Default: 3000.
   */
  port?: number
  /**
   * Addresses to listen on. Default: loopback, or all if policies or tls.clientCa demand that clients authenticate. An empty list: all.
   *
   * Items: IP address.
   */
  addresses?: string[]
  /**
   * Address and port in one text, in place of addresses and port: `127.0.0.1:4000`, `[::1]:4000`, `0.0.0.0` or `*:4000`.
   */
  listen?: string
  tls?: FileTls
  /**
   * Traffic policies of the port.
   */
  policies?: Traffic
  /**
   * Whether names of tools and prompts get the name of the server as prefix. Default: Conditional, with more than one server.
   */
  prefixMode?: 'Conditional' | 'Always' | 'Never'
  /**
   * Handling of a server that fails. Default: FailClosed.
   */
  failureMode?: 'FailClosed' | 'FailOpen'
  /**
   * Whether clients have sessions. Default: Stateful.
   */
  sessionRouting?: 'Stateful' | 'Stateless'
  /**
   * Enabled: clients search for tools and see three. Default: Disabled.
   */
  toolSearch?: 'Disabled' | 'Enabled'
  /**
   * Origins of pages that may send requests. Others get 403.
   *
   * @minItems 1
   * @maxItems 64
   *
   * Items: Origin: `*`, or `scheme://host[:port]`.
   */
  allowOrigins?: string[]
  /**
   * Parts of the servers, by path or host.
   *
   * @minItems 1
   * @maxItems 32
   */
  views?: McpView[]
  /**
   * Pins of tools: `pins: "${file:pins.json}"`.
   */
  toolPins?: ResolvedMcpToolPins
  /**
   * Portable: names of tools have at most 64 letters, digits, `_` and `-`. Default: Unchanged.
   */
  toolNames?: 'Unchanged' | 'Portable'
  [k: string]: unknown
}
/**
 * An MCP server: exactly one of url, command. With openapi, an HTTP API at url.
 */
export interface ShortMCPServer {
  /**
   * URL of the MCP endpoint, `http://` or `https://`. Without a path: `/mcp`, or `/sse` with protocol SSE. With openapi: URL of the API.
   */
  url?: string
  /**
   * OpenAPI document of an HTTP API, in JSON or YAML, whose operations become tools: a path relative to the config file.
   */
  openapi?: string
  /**
   * Who may use which tools. Tools that no rule admits are unknown. Default: every client may use all.
   *
   * @minItems 1
   * @maxItems 64
   */
  rules?: ShortMCPRule[]
  /**
   * Transport. Default: StreamableHTTP.
   */
  protocol?: 'StreamableHTTP' | 'SSE'
  /**
   * Sent as `Authorization: Bearer`.
   */
  apiKey?: string
  tools?: McpTools
  /**
   * Policies of this server.
   */
  policies?: BackendWithMCP
  /**
   * A program that speaks MCP over stdio, in place of url. Each session has a process of its own, without a shell.
   *
   * @minItems 1
   *
   * Items: Program, then arguments.
   */
  command?: string[]
  /**
   * Environment of command. There is no other, not even PATH, unless inheritEnv is set.
   */
  env?: {
    /**
     * Value.
     */
    [k: string]: string
  }
  /**
   * Whether command gets the environment of the data plane, too; `env` takes precedence. Default: false.
   */
  inheritEnv?: boolean
}
/**
 * An API key of a client, sent as `Authorization: Bearer`: exactly one of key, keyHash.
 */
export interface ShortKey {
  /**
   * The key, at least 16 characters. Usually a placeholder such as `${ALICE_KEY}`.
   */
  key?: string
  /**
   * SHA-256 of the key, as `proxyctl keys create` prints it: `sha256:` and 64 hex digits.
   */
  keyHash?: string
  /**
   * Models that the key may use. Default: all.
   *
   * @minItems 1
   * @maxItems 64
   *
   * Items: Name, with `*` for any text.
   */
  models?: string[]
  budget?: ShortKeyBudget
  /**
   * When the key ends (RFC 3339): `2027-01-31T00:00:00Z`.
   */
  expires?: string
  /**
   * Fields of `apiKey` in expressions, such as `team`, which the request log records.
   */
  metadata?: {
    /**
     * Value.
     */
    [k: string]: string
  }
}
/**
 * What a key may spend in each window; then requests get 429.
 */
export interface ShortKeyBudget {
  /**
   * US dollars. Models without a price are rejected.
   */
  usd?: number
  /**
   * LLM tokens, input and output.
   */
  tokens?: number
  /**
   * Requests.
   */
  requests?: number
  /**
   * Calendar window, UTC; weeks begin on Monday. Default: "Month".
   */
  window?: 'Hour' | 'Day' | 'Week' | 'Month'
}
/**
 * Guardrails of all models. Those of a model, `policies.ai.promptGuard`, replace them for it.
 */
export interface ShortGuardrails {
  /**
   * Texts to replace in prompts and responses.
   *
   * @minItems 1
   */
  mask?: ShortPattern[]
  /**
   * Texts for which a prompt is rejected with 403; in responses they are replaced.
   *
   * @minItems 1
   */
  reject?: ShortPattern[]
  /**
   * Further checks of prompts.
   *
   * @minItems 1
   * @maxItems 6
   */
  request?: PromptguardRequest[]
  /**
   * Further checks of responses.
   *
   * @minItems 1
   * @maxItems 7
   */
  response?: PromptguardResponse[]
}
/**
 * TLS of the ports of models and MCP servers. Paths are relative to the file.
 */
export interface ShortHttps {
  /**
   * Certificate chain: a path, or PEM.
   */
  cert: string
  /**
   * Private key: a path, or PEM.
   */
  key: string
  /**
   * Trust anchors for client certificates: a path, or PEM. Setting it requires a client certificate.
   */
  clientCa?: string
}
/**
 * Admits what all of its fields match.
 */
export interface ShortMCPRule {
  /**
   * Tools. Default: all, with prompts and resources.
   *
   * @minItems 1
   * @maxItems 256
   *
   * Items: Name of a tool as the server has it, with `*` for any text.
   */
  tools?: string[]
  /**
   * Clients, by their names in keys. Default: every client.
   *
   * @minItems 1
   * @maxItems 256
   *
   * Items: Name of a key in keys.
   */
  keys?: string[]
  /**
   * Condition on the request, such as `jwt.team == "sales"`. Errors: false.
   */
  when?: CELExpression
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
