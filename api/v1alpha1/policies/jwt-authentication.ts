import { choice, list, object, ref, string, type Definitions } from '../../schema.ts'

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
    'Validates JSON Web Tokens sent as `Authorization: Bearer`. On success the token is removed from the request and its claims are usable as `jwt.<claim>`. Signature, `iss`, `aud` and `exp` (with 60 s leeway) are checked.',
    { mode: jwtMode, providers: list(ref('JWTProvider'), 'Accepted issuers. The `kid` of the token selects the provider.', 1, 64) },
    ['providers'],
  ),
  JWTProvider: object('One issuer of tokens.', { issuer: ref('ShortString', 'Required value of the `iss` claim.'), audiences, jwks: ref('JWKS') }, [
    'issuer',
    'jwks',
  ]),
}
