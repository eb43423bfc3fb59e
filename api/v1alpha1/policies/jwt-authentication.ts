import { choice, exactlyOneOf, list, object, ref, string, type Definitions } from '../../schema.ts'
import { duration } from '../shared.ts'

export const audiences = list(
  string('Audience.', { minLength: 1, maxLength: 1024 }),
  'Accepted values of the `aud` claim; one must match. When not set, any audience, or none, is accepted.',
  1,
  64,
)
export const jwtMode = choice(
  ['Strict', 'Optional', 'Permissive'],
  'Strict: a valid token must be present, else 401. Optional: a token that is present must be valid; requests without one pass. Permissive: no request is rejected; claims of valid tokens are usable for later authorization and logging.',
  { default: 'Strict' },
)

export const jwtAuthenticationDefinitions: Definitions = {
  JWTAuthentication: object(
    'Validates tokens sent as `Authorization: Bearer`: JSON Web Tokens by the keys of their issuer, others by introspection. On success the token is removed from the request and its claims are usable as `jwt.<claim>`. Signature, `iss`, `aud` and `exp` (with 60 s leeway) are checked.',
    {
      mode: jwtMode,
      providers: list(ref('JWTProvider'), 'Accepted issuers. The `kid` of the token selects the provider; a token of no key set is introspected.', 1, 64),
    },
    ['providers'],
    [
      {
        rule: 'self.providers.filter(p, has(p.introspection)).size() <= 1',
        message: 'one provider may have introspection, because a token does not name its provider',
        fieldPath: '.providers',
      },
    ],
  ),
  JWTProvider: object(
    'One issuer of tokens: exactly one of jwks, introspection.',
    {
      issuer: ref('ShortString', 'Required value of the `iss` claim. A response of the introspection endpoint may lack it.'),
      audiences,
      jwks: ref('JWKS'),
      introspection: ref('TokenIntrospection'),
    },
    ['issuer'],
    [exactlyOneOf('jwks', 'introspection')],
  ),
  TokenIntrospection: object(
    'Asks the authorization server about each token (RFC 7662): for opaque tokens, and for JSON Web Tokens that can be revoked. The members of the response are usable as `jwt.<claim>`. If the server does not respond, requests with a token get 503.',
    {
      backendRef: ref('BackendObjectReference', 'The authorization server: a Service or a static ProxyBackend. Its `tls` policy applies.'),
      path: string('Path, for example `/realms/demo/protocol/openid-connect/token/introspect`.', {
        minLength: 1,
        maxLength: 1024,
        pattern: '^/[!-~]*$',
      }),
      secretRef: ref('SecretReference', 'Secret with the entries `clientId` and `clientSecret`: the gateway at the authorization server.'),
      clientAuthentication: choice(['Basic', 'Body'], 'Where id and secret of the client are sent: in the Authorization header (default), or in the body.'),
      cacheDuration: {
        ...duration('Longest time that an active token is accepted without another call; never after its `exp`. 0s: each request makes a call. Default: 30s.'),
        'x-kubernetes-validations': [{ rule: "duration(self) <= duration('1h')", message: 'must be at most 1h', reason: 'FieldValueInvalid' as const }],
      },
    },
    ['backendRef', 'path', 'secretRef'],
  ),
}
