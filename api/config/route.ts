import { exactlyOneOf, ref, type Definitions, type Schema } from '../schema.ts'
import { boolean, integer, key, list, object, port, string } from './shared.ts'

const one = (schema: Schema, ...fields: string[]): Schema => ({ ...schema, 'x-kubernetes-validations': [exactlyOneOf(...fields)] })

export const routeDefinitions: Definitions = {
  RouteRef: object(
    'The source route and rule of a message, for logs and metrics.',
    {
      kind: { type: 'string', enum: ['HTTPRoute', 'GRPCRoute', 'TCPRoute', 'TLSRoute'], description: 'Kind of the route.' },
      namespace: string('Namespace.'),
      name: string('Name.'),
      rule: string('Name of the rule, where it has one.'),
      ruleIndex: integer('Position of the rule in the route, from 0.', { minimum: 0 }),
    },
    ['kind', 'namespace', 'name', 'ruleIndex'],
  ),
  Route: object(
    'One rule of an HTTPRoute or GRPCRoute (whose methods have become paths), on all the listeners that accepted it.',
    {
      key: key('<namespace>/<name>.<rule, 2 digits>[.grpc]'),
      listeners: list(string('Key of a listener.'), 'Listeners that accepted the route.'),
      route: ref('RouteRef'),
      creationTimestamp: string(
        'Creation time of the route (RFC 3339). Of equal matches, the oldest route is used, then the lowest `namespace/name`, then the first rule.',
      ),
      origin: string('Field of the short form of a config file that the rule is made from, such as `llm.models.gpt-4o`. For the console; absent for others.'),
      hostnames: list(
        string('Exact or `*.` hostname, lower case.'),
        'Hostnames of the route, as written; the data plane intersects them with each listener. Absent matches every host of the listener.',
      ),
      matches: list(ref('RouteMatch'), 'Alternatives, one of which must match. Not set: all requests.'),
      filters: ref('RouteFilters'),
      timeouts: ref('RouteTimeouts'),
      retry: ref('RouteRetry'),
      sessionPersistence: ref('SessionPersistence'),
      backends: list(ref('WeightedBackend'), 'Where requests go. Absent, empty or all of weight 0: 500, unless a filter answers.'),
    },
    ['key', 'listeners', 'route'],
  ),
  RouteMatch: object('All given conditions must hold.', {
    path: ref('PathMatch'),
    headers: list(ref('ValueMatch'), 'Header conditions; names are case-insensitive; `:method`, `:path`, `:authority`, `:scheme` are usable.'),
    queryParams: list(ref('ValueMatch'), 'Query conditions; form-decoded; the last value of a repeated parameter counts.'),
    method: string('HTTP method, case-sensitive.'),
  }),
  PathMatch: object(
    'Condition on the undecoded path without query.',
    {
      type: {
        type: 'string',
        enum: ['Exact', 'PathPrefix', 'RegularExpression'],
        description: 'PathPrefix is segment-wise; RegularExpression matches the full path, RE2 syntax.',
      },
      value: string('Value.'),
    },
    ['type', 'value'],
  ),
  ValueMatch: object(
    'Condition on a header or query parameter.',
    {
      name: string('Name; lower case for headers.'),
      type: { type: 'string', enum: ['Exact', 'RegularExpression'], description: 'RegularExpression matches the full value, RE2 syntax.' },
      value: string('Value.'),
    },
    ['name', 'type', 'value'],
  ),
  HeaderValue: object('A header to write.', { name: string('Header name.'), value: string('Value; may be empty.') }, ['name', 'value']),
  HeaderModifier: object('Changes to a head, in the order add, set, remove.', {
    add: list(ref('HeaderValue'), 'Append a field line.'),
    set: list(ref('HeaderValue'), 'Replace every field line of that name. `host` on a request rewrites the authority.'),
    remove: list(string('Header name.'), 'Remove every field line of that name.'),
  }),
  PathModifier: object(
    'How a path is rewritten.',
    {
      type: {
        type: 'string',
        enum: ['ReplaceFullPath', 'ReplacePrefixMatch'],
        description: 'ReplacePrefixMatch needs a PathPrefix match and is segment-aware.',
      },
      value: string('Replacement.'),
    },
    ['type', 'value'],
  ),
  RequestRedirect: object('Responds with a redirect instead of forwarding.', {
    scheme: { type: 'string', enum: ['http', 'https'], description: 'Scheme of Location; default: that of the request.' },
    hostname: string('Host of Location; default: that of the request.'),
    path: ref('PathModifier'),
    port: port('Port of Location; dropped when it is the default of the scheme.'),
    statusCode: { type: 'integer', enum: [301, 302, 303, 307, 308], default: 302, description: 'Status.' },
  }),
  UrlRewrite: object('Rewrites the request to the upstream.', {
    hostname: string('Replaces the authority and turns automatic host rewriting off.'),
    path: ref('PathModifier'),
  }),
  RequestMirror: object(
    'Sends a copy of the request head to another backend, whose response is discarded.',
    {
      backend: ref('BackendRef'),
      numerator: integer('Share of requests: numerator / denominator.', { minimum: 0, default: 100 }),
      denominator: integer('See numerator.', { minimum: 1, default: 100 }),
    },
    ['backend'],
  ),
  // Shared by the filter of a route and the policy, hence as permissive as the filter of Gateway API. ProxyPolicies are validated by their own schema.
  CORS: object('Gateway API HTTPCORSFilter.', {
    allowOrigins: list(string('`*` or `scheme://host[:port]`; the host may start with `*.` or be `*`.'), 'Origins that may read responses.'),
    allowCredentials: boolean('Sends Access-Control-Allow-Credentials: true.'),
    allowMethods: list(
      { type: 'string', enum: ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH', '*'], description: 'Method or `*`.' },
      'Methods listed in preflight responses.',
    ),
    allowHeaders: list(string('Header or `*`.'), 'Request headers listed in preflight responses.'),
    exposeHeaders: list(string('Header or `*`.'), 'Response headers that scripts may read.'),
    maxAge: integer('Seconds for which a preflight response may be cached.', { minimum: 1, default: 5 }),
  }),
  RouteFilters: object('Filters written in the rule itself; each kind replaces the same kind coming from a ProxyPolicy.', {
    requestHeaders: list(ref('HeaderModifier'), 'RequestHeaderModifier filters, in order.'),
    responseHeaders: list(ref('HeaderModifier'), 'ResponseHeaderModifier filters, in order.'),
    redirect: ref('RequestRedirect'),
    urlRewrite: ref('UrlRewrite'),
    mirrors: list(ref('RequestMirror'), 'RequestMirror filters, in order.'),
    cors: ref('CORS'),
    extAuth: ref('RouteExtAuth'),
    invalid: string('Set if the rule is invalid: every matching request gets 500 `failed to apply filters: <this text>`.'),
  }),
  RouteExtAuth: object(
    'An ExternalAuth filter: a policy, and settings that only the filter has.',
    {
      policy: ref('ExtAuth'),
      grpcHeaders: list(string('Header name.'), 'Request headers sent to a gRPC server. Absent: all.'),
      isHostSent: boolean('The call to an HTTP server has the Host of the request.'),
      areAllHeadersCopied: boolean('All headers of the response of an HTTP server are copied to the request, except those about framing.'),
    },
    ['policy'],
  ),
  RouteTimeouts: object('Gateway API HTTPRouteTimeouts.', {
    requestMs: ref(
      'Milliseconds',
      'Whole response, body included, from receipt of the request head; covers retries and backoff. Late head: 504; late body: aborted.',
    ),
    backendRequestMs: ref('Milliseconds', 'One attempt, until the response head. Late: 504, retryable.'),
  }),
  RouteRetry: object(
    'Gateway API HTTPRouteRetry.',
    {
      codes: list(integer('Status.', { minimum: 400, maximum: 599 }), 'Statuses that are retried, besides connection failures and attempt timeouts.'),
      attempts: integer('Extra tries; 0 turns retrying off.', { minimum: 0, maximum: 254, default: 1 }),
      backoffMs: ref('Milliseconds', 'Fixed delay before each retry.'),
    },
    [],
  ),
  SessionPersistence: object(
    'Requests of a client go to one endpoint (GEP-1619). The token of a session is encrypted.',
    {
      type: { type: 'string', enum: ['Cookie', 'Header'], description: 'Where the token is: a cookie, or a header of responses that the client sends back.' },
      name: string('Name of the cookie or header.', { minLength: 1, maxLength: 128, pattern: "^[A-Za-z0-9!#$%&'*+\\-.^_`|~]+$" }),
      path: string('Path of the cookie.', { maxLength: 1024, pattern: '^/[!-:<-~]*$', default: '/' }),
      isPermanent: boolean('The cookie outlives the session of the browser, up to absoluteTimeoutMs.'),
      absoluteTimeoutMs: ref('Milliseconds', 'A session ends after this time. Default: never.'),
    },
    ['type', 'name'],
  ),
  BackendRef: one(
    object('A destination. Exactly one of service, backend, address, invalid.', {
      service: string('Key of a Service message.'),
      port: port('Port of the Service.'),
      backend: string('Key of a Backend message.'),
      address: string('`host:port`, for `-f` files and call-outs without a resource.'),
      invalid: {
        type: 'string',
        enum: ['BACKEND_NOT_FOUND', 'SERVICE_NOT_FOUND', 'NO_VALID_BACKENDS'],
        description: 'The reference does not resolve; its share of requests gets this error.',
      },
    }),
    'service',
    'backend',
    'address',
    'invalid',
  ),
  WeightedBackend: object(
    'One of the destinations of a rule.',
    {
      ref: ref('BackendRef'),
      weight: integer('Share of the requests among the backends of the rule; 0: no requests.', { minimum: 0, maximum: 1_000_000, default: 1 }),
      requestHeaders: list(ref('HeaderModifier'), 'Filters of the backendRef.'),
      responseHeaders: list(ref('HeaderModifier'), 'Filters of the backendRef.'),
      redirect: ref('RequestRedirect'),
      mirrors: list(ref('RequestMirror'), 'Filters of the backendRef.'),
    },
    ['ref'],
  ),
  TcpRoute: object(
    'A TCPRoute, or one rule of a TLSRoute.',
    {
      key: key('<namespace>/<name>.<rule, 2 digits>.<tcp or tls>'),
      listeners: list(string('Key of a listener.'), 'Listeners that accepted the route.'),
      route: ref('RouteRef'),
      creationTimestamp: string('RFC 3339; where several routes match, the oldest wins, then `namespace/name`.'),
      hostnames: list(string('SNI: exact or `*.` hostname, lower case.'), 'TLSRoute only. Absent matches every name of the listener.'),
      backends: list(ref('WeightedBackend'), 'Destinations. None usable: the connection is closed.'),
    },
    ['key', 'listeners', 'route'],
  ),
}
