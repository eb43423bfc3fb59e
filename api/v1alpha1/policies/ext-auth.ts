import { choice, exactlyOneOf, integer, list, map, object, ref, type Definitions } from '../../schema.ts'
import { whenProtecting } from '../shared.ts'

const celMap = (description: string) => map(ref('CELExpression'), description, undefined, 64)

export const extAuthDefinitions: Definitions = {
  ExtAuth: object(
    'External authorization: a service decides about each request before it is forwarded. Exactly one of grpc, http. If the service cannot be reached or the reference does not resolve, the request is rejected with 403 unless failureMode is FailOpen.',
    {
      backendRef: ref('BackendObjectReference', 'The authorization server: a Service or a ProxyBackend.'),
      grpc: ref('AgentExtAuthGRPC'),
      http: ref('AgentExtAuthHTTP'),
      forwardBody: ref('ExtAuthBody'),
      failureMode: choice(
        ['FailClosed', 'FailOpen'],
        'Handling of requests without a decision of the service. FailClosed rejects them with 403, FailOpen forwards them.',
        {
          default: 'FailClosed',
        },
      ),
      when: whenProtecting,
    },
    ['backendRef'],
    [exactlyOneOf('grpc', 'http')],
  ),
  AgentExtAuthGRPC: object("Calls the service by gRPC, with Envoy's protocol (`envoy.service.auth.v3.Authorization/Check`).", {
    contextExtensions: map({ type: 'string' }, 'Fixed values sent as `context_extensions`.', undefined, 64),
    requestMetadata: celMap(
      'Computed values sent as filter metadata of `metadata_context`; each must be a map, and one that fails is omitted. If this is not set and a JWT was verified, its claims are sent under `envoy.filters.http.jwt_authn`.',
    ),
  }),
  AgentExtAuthHTTP: object(
    'Calls the service by HTTP, with the method of the request. Status 200 allows the request; any other response denies it, and its status, headers and body are sent to the client. The call times out after 2 s.',
    {
      path: ref('CELExpression', 'Path of the call; default: path and query of the request. If it fails, the request is rejected with 403.'),
      redirect: ref('CELExpression', 'Location to redirect the client to (302) if the server responds with 401 or 403, for example a sign-in page.'),
      allowedRequestHeaders: list(
        ref('ShortString', 'Header name.'),
        'Request headers sent to the authorization server; pseudo headers are allowed. Default: only `Authorization`.',
        undefined,
        64,
      ),
      addRequestHeaders: celMap('Computed headers added to the call; one that fails is removed from it.'),
      allowedResponseHeaders: list(
        ref('ShortString', 'Header name.'),
        'Headers of the response of the server to copy to the request for the backend. They replace those of the client.',
        undefined,
        64,
      ),
      responseMetadata: celMap(
        "Values computed from `request` and the server's `response`, kept as `extauthz.<key>` for later expressions; an entry that fails is omitted.",
      ),
    },
  ),
  ExtAuthBody: object(
    'When set, the request body is buffered, sent to the authorization server, and then forwarded unchanged.',
    { maxSize: integer('Maximum body size in bytes. A request with a larger one is rejected with 413 and the server is not called.', 1, 4294967295) },
    ['maxSize'],
  ),
}
