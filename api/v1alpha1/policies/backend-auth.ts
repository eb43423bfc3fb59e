import { choice, exactlyOneOf, list, map, object, ref, set, string, type Definitions } from '../../schema.ts'
import { duration } from '../shared.ts'
import { exactlyOneOfNames, withRealNames } from '../real-names.ts'

/** Parameters of token requests that fields other than `parameters` set. */
const OWN_PARAMETERS = ['grant_type', 'subject_token', 'subject_token_type', 'assertion', 'client_id', 'client_secret', 'scope', 'audience', 'resource']

/** Claims that the gateway sets. */
const OWN_CLAIMS = ['iss', 'aud', 'iat', 'nbf', 'exp', 'jti']

const secretEntry = (name: string) => string(`${name}.`, { minLength: 1, maxLength: 256 })

export const backendAuthDefinitions: Definitions = {
  BackendAuth: object(
    'Credentials for the backend: one of key, secretRef, passthrough, aws, azure, gcp, oauth, jwtSign. If they are not available: 500.',
    withRealNames('BackendAuth', {
      key: string('Value sent as `Authorization: Bearer`. Not recommended: everyone who may read this object can read it; prefer secretRef.', {
        minLength: 1,
        maxLength: 2048,
      }),
      secretRef: ref(
        'SecretReference',
        'Secret whose entry `Authorization` is sent as `Authorization: Bearer`; white space around it and one leading `Bearer ` are removed.',
      ),
      passthrough: object(
        'Forwards the credential that a client authentication policy (JWT, API key) verified and removed. No effect without such a policy.',
        {},
      ),
      cloudA: ref('CloudAAuth'),
      cloudB: ref('CloudBAuth'),
      cloudC: ref('CloudCAuth'),
      oauth: ref('OAuthCredentials'),
      jwtSign: ref('JWTSign'),
    }),
    [],
    [exactlyOneOfNames('BackendAuth', 'key', 'secretRef', 'passthrough', 'cloudA', 'cloudB', 'cloudC', 'oauth', 'jwtSign')],
  ),
  JWTSign: object(
    'Short-lived JSON Web Tokens that the gateway signs for the backend, sent as `Authorization: Bearer`, with `iss`, `aud`, `iat`, `nbf` and `exp`. `traffic.directResponse.keySet` publishes the keys that verify them. Equal claims get the same token until half of its lifetime.',
    {
      issuer: ref('LongString', 'Claim `iss`: what the backend knows this gateway as.'),
      audiences: list(ref('LongString'), 'Claim `aud`: the backend.', 1, 16),
      secretRef: ref(
        'SecretReference',
        'Secret whose entry `key` signs: a private key in PEM, EC (P-256, P-384, P-521), Ed25519, or RSA of at least 2048 bits. The `kid` is the thumbprint of its public key (RFC 7638). Entries `nextKey` and `previousKey` are only published.',
      ),
      claims: map(ref('CELExpression'), 'More claims by name, such as `sub: jwt.sub`. Null omits the claim; a failure rejects the request with 401.', 1, 32),
      lifetime: {
        ...duration('Time between `iat` and `exp`. At most 1h. Default: 5m.', 10_000),
        'x-kubernetes-validations': [
          {
            rule: "duration(self) >= duration('10s') && duration(self) <= duration('1h')",
            message: 'must be at least 10s and at most 1h',
            reason: 'FieldValueInvalid' as const,
          },
        ],
      },
    },
    ['issuer', 'audiences', 'secretRef'],
    [
      {
        rule: `!has(self.claims) || !self.claims.exists(name, name in [${OWN_CLAIMS.map((name) => `'${name}'`).join(', ')}])`,
        message: `claims may not contain ${OWN_CLAIMS.join(', ')}`,
        fieldPath: '.claims',
      },
    ],
  ),
  OAuthCredentials: object(
    'Access tokens of an OAuth authorization server, sent as `Authorization: Bearer`: one for each user with TokenExchange and JWTBearer, one for all with ClientCredentials. They are cached until shortly before they expire. Requests without an accepted token fail with 401; if the token endpoint fails, with 502.',
    {
      grantType: choice(
        ['TokenExchange', 'JWTBearer', 'ClientCredentials'],
        'TokenExchange (RFC 8693): the token of the request is exchanged. JWTBearer (RFC 7523): it is the assertion. ClientCredentials (RFC 6749 section 4.4): a token of the gateway.',
      ),
      tokenEndpoint: object(
        'Token endpoint of the authorization server.',
        {
          backendRef: ref('BackendObjectReference', 'The server: a Service or a static ProxyBackend. Its `tls` policy applies.'),
          path: string('Path, for example `/realms/demo/protocol/openid-connect/token`.', { minLength: 1, maxLength: 1024, pattern: '^/[!-~]*$' }),
        },
        ['backendRef', 'path'],
      ),
      secretRef: ref(
        'SecretReference',
        'Secret with entries `clientId` and `clientSecret`. Required with ClientCredentials; default: no client authentication.',
      ),
      clientAuthentication: choice(['Basic', 'Body'], 'Where id and secret of the client are sent: in the Authorization header (default), or in the body.'),
      subjectToken: ref(
        'CELExpression',
        'The token of the request. Default: the one that a JWT policy or `mcp.authentication` verified, else the bearer token of the Authorization header.',
      ),
      subjectTokenType: choice(['AccessToken', 'IDToken', 'JWT'], 'Type of the token of the request; only with TokenExchange. Default: AccessToken.'),
      scopes: set(string('Scope.', { minLength: 1, maxLength: 256, pattern: '^[!#-\\[\\]-~]+$' }), 'Scopes to request.', 1, 32),
      audiences: list(ref('LongString'), 'Values of the parameter `audience`.', 1, 16),
      resources: list(ref('LongString'), 'Values of the parameter `resource` (RFC 8707): URIs.', 1, 16),
      parameters: map(ref('LongString'), 'More parameters of the request, for example `requested_token_use: on_behalf_of` of Microsoft Entra ID.', 1, 16),
    },
    ['grantType', 'tokenEndpoint'],
    [
      {
        rule: "self.grantType != 'ClientCredentials' || has(self.secretRef)",
        message: 'secretRef is required with ClientCredentials',
        fieldPath: '.secretRef',
      },
      {
        rule: "self.grantType != 'ClientCredentials' || !has(self.subjectToken)",
        message: 'subjectToken may not be set with ClientCredentials',
        fieldPath: '.subjectToken',
        reason: 'FieldValueForbidden',
      },
      {
        rule: "!has(self.subjectTokenType) || self.grantType == 'TokenExchange'",
        message: 'subjectTokenType may only be set with TokenExchange',
        fieldPath: '.subjectTokenType',
        reason: 'FieldValueForbidden',
      },
      { rule: '!has(self.clientAuthentication) || has(self.secretRef)', message: 'clientAuthentication needs secretRef', fieldPath: '.clientAuthentication' },
      {
        rule: `!has(self.parameters) || !self.parameters.exists(name, name in [${OWN_PARAMETERS.map((name) => `'${name}'`).join(', ')}])`,
        message: 'parameters may not contain those that other fields set',
        fieldPath: '.parameters',
      },
    ],
  ),
  CloudAAuth: object('AWS: requests are signed (Signature Version 4).', {
    secretRef: ref(
      'SecretReference',
      'Secret with entries `accessKey`, `secretKey` and optionally `sessionToken`. Not set: the default credential chain: environment, web identity, container and instance metadata.',
    ),
  }),
  CloudBAuth: object(
    'Microsoft Azure: an access token of Microsoft Entra ID; exactly one of secretRef, managedIdentity.',
    { secretRef: ref('SecretReference', 'Secret with entries `clientId`, `tenantId` and `clientSecret`.'), managedIdentity: ref('CloudBManagedIdentity') },
    [],
    [exactlyOneOf('secretRef', 'managedIdentity')],
  ),
  CloudBManagedIdentity: object(
    'A user-assigned managed identity.',
    { clientId: secretEntry('Client id'), objectId: secretEntry('Object id'), resourceId: secretEntry('Resource id') },
    ['clientId', 'objectId', 'resourceId'],
  ),
  CloudCAuth: object(
    'Google Cloud: a token of the workload (application default credentials).',
    {
      type: choice(['AccessToken', 'IdToken'], 'AccessToken for Google APIs, IdToken for services such as Cloud Run.', { default: 'AccessToken' }),
      audience: ref('ShortString', 'Audience of the id token; only with IdToken. Default: `https://` and the host name of the backend.'),
    },
    [],
    [
      {
        rule: "!has(self.audience) || (has(self.type) && self.type == 'IdToken')",
        message: 'audience may only be set when type is IdToken',
        fieldPath: '.audience',
        reason: 'FieldValueForbidden',
      },
    ],
  ),
}
