import { choice, exactlyOneOf, integer, list, map, object, ref, type Definitions } from '../../schema.ts'

const celMap = (description: string) => map(ref('CELExpression'), description, undefined, 64)

export const extAuthDefinitions: Definitions = {
  ExtAuth: object(
    'External authorization: a service decides about each request before it is forwarded. Exactly one of grpc, http. When the service cannot be reached or the reference does not resolve, the request is answered 403 unless failureMode says otherwise.',
    {
      backendRef: ref('BackendObjectReference', 'The authorization server: a Service or a ProxyBackend.'),
      grpc: ref('AgentExtAuthGRPC'),
      http: ref('AgentExtAuthHTTP'),
      forwardBody: ref('ExtAuthBody'),
      failureMode: choice(['FailClosed', 'FailOpen'], 'What happens to requests that the service gives no decision about: 403, or they pass.', {
        default: 'FailClosed',
      }),
    },
    ['backendRef'],
    [exactlyOneOf('grpc', 'http')],
  ),
  AgentExtAuthGRPC: object("Asks by gRPC, in Envoy's protocol (`envoy.service.auth.v3.Authorization/Check`).", {
    contextExtensions: map({ type: 'string' }, 'Fixed values sent as `context_extensions`.', undefined, 64),
    requestMetadata: celMap(
      'Computed values sent as filter metadata of `metadata_context`; each must give a map, and one that fails is left out. When this is not set and a JWT was verified, its claims are sent under `envoy.filters.http.jwt_authn`.',
    ),
  }),
  AgentExtAuthHTTP: object(
    'Asks by HTTP, with the method of the request. Status 200 allows; anything else is a denial and its status, headers and body go to the client. The call times out after 2 s.',
    {
      path: ref('CELExpression', 'Path to ask for; default: path and query of the request. When it fails, the request is answered 403.'),
      redirect: ref('CELExpression', 'Where to send the client (302) when the server answers 401 or 403, for example a sign-in page.'),
      allowedRequestHeaders: list(
        ref('ShortString', 'Header name.'),
        'Request headers sent to the authorization server; pseudo headers are allowed. Default: only `Authorization`.',
        undefined,
        64,
      ),
      addRequestHeaders: celMap('Computed headers added to the call; one that fails is removed from it.'),
      allowedResponseHeaders: list(
        ref('ShortString', 'Header name.'),
        "Headers copied from the server's answer to the request for the backend, replacing what the client sent.",
        undefined,
        64,
      ),
      responseMetadata: celMap(
        "Values computed from `request` and the server's `response`, kept as `extauthz.<key>` for later expressions; an entry that fails is left out.",
      ),
    },
  ),
  ExtAuthBody: object(
    'When set, the request body is buffered, sent to the authorization server, and then forwarded unchanged.',
    { maxSize: integer('Largest body in bytes. A larger one is answered 413 and the server is not asked.', 1, 4294967295) },
    ['maxSize'],
  ),
}
