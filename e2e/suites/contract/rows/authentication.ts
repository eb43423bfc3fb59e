import { FEW, LONG, MANY, one, PATTERN, policy, repeat, REQUIRED, service, SHORT, text, traffic, UNSUPPORTED, type Row } from './row.ts'

const at = 'spec.traffic'
const provider = { issuer: 'i', jwks: { inline: '{"keys":[]}' } }
const jwt = (more: object) => traffic({ jwtAuthentication: { providers: [provider], ...more } })
const jwks = (value: unknown) => jwt({ providers: [{ issuer: 'i', jwks: value }] })
const remote = (more: object) => jwks({ remote: { jwksPath: '/jwks', backendRef: service, ...more } })
const oidc = (more: object) => traffic({ oidc: { issuer: 'https://login.example.com', backendRef: service, clientId: 'gateway', ...more } })
const introspected = (more: object) =>
  jwt({ providers: [provider, { issuer: 'i', introspection: { backendRef: service, path: '/introspect', secretRef: { name: 's' }, ...more } }] })
const introspectionAt = `${at}.jwtAuthentication.providers[1].introspection`
const basic = (section: object) => traffic({ basicAuthentication: section })
const apiKey = (section: object) => traffic({ apiKeyAuthentication: section })
const authorization = (section: object) => traffic({ authorization: section })
const jwksAt = `${at}.jwtAuthentication.providers[0].jwks`
const mcpAuthentication = { jwks: { jwksPath: '/jwks', backendRef: service } }

export const authenticationRows: Row[] = [
  ...['Strict', 'Optional', 'Permissive'].map((mode): Row => [`JWT in mode ${mode}`, jwt({ mode })]),
  ['JWT in an unknown mode', jwt({ mode: 'Lax' }), `${at}.jwtAuthentication.mode`, UNSUPPORTED],
  ['JWT without providers', traffic({ jwtAuthentication: {} }), `${at}.jwtAuthentication.providers`, REQUIRED],
  ['JWT with no providers', jwt({ providers: [] }), `${at}.jwtAuthentication.providers`, FEW],
  ['JWT with 64 providers', jwt({ providers: repeat(64, () => provider) })],
  ['JWT with 65 providers', jwt({ providers: repeat(65, () => provider) }), `${at}.jwtAuthentication.providers`, MANY],
  ['JWT without issuer', jwt({ providers: [{ jwks: provider.jwks }] }), `${at}.jwtAuthentication.providers[0].issuer`, REQUIRED],
  ['JWT with an empty issuer', jwt({ providers: [{ ...provider, issuer: '' }] }), `${at}.jwtAuthentication.providers[0].issuer`, SHORT],
  ['JWT with an issuer of 257 characters', jwt({ providers: [{ ...provider, issuer: text(257) }] }), `${at}.jwtAuthentication.providers[0].issuer`, LONG],
  ['JWT with 64 audiences', jwt({ providers: [{ ...provider, audiences: repeat(64, (i) => `a${i}`) }] })],
  [
    'JWT with 65 audiences',
    jwt({ providers: [{ ...provider, audiences: repeat(65, (i) => `a${i}`) }] }),
    `${at}.jwtAuthentication.providers[0].audiences`,
    MANY,
  ],
  ['JWT with no audiences', jwt({ providers: [{ ...provider, audiences: [] }] }), `${at}.jwtAuthentication.providers[0].audiences`, FEW],
  ['JWT without jwks', jwt({ providers: [{ issuer: 'i' }] }), `${at}.jwtAuthentication.providers[0]`, one('jwks', 'introspection')],
  ['JWT with introspection', introspected({ clientAuthentication: 'Body', cacheDuration: '0s' })],
  ['JWT with introspection cached for 1h', introspected({ cacheDuration: '1h' })],
  ['JWT with introspection cached for 61m', introspected({ cacheDuration: '61m' }), `${introspectionAt}.cacheDuration`, 'must be at most 1h'],
  ['JWT with introspection at a path without slash', introspected({ path: 'introspect' }), `${introspectionAt}.path`, PATTERN],
  ['JWT with introspection without a Secret', introspected({ secretRef: undefined }), `${introspectionAt}.secretRef`, REQUIRED],
  [
    'JWT with introspection twice',
    jwt({ providers: repeat(2, () => ({ issuer: 'i', introspection: { backendRef: service, path: '/i', secretRef: { name: 's' } } })) }),
    `${at}.jwtAuthentication.providers`,
    'one provider may have introspection, because a token does not name its provider',
  ],
  ['an empty jwks', jwks({}), jwksAt, one('remote', 'inline')],
  ['jwks remote and inline', jwks({ inline: '{}', remote: { jwksPath: '/j', backendRef: service } }), jwksAt, one('remote', 'inline')],
  ['an inline jwks of 1 character', jwks({ inline: '{' }), `${jwksAt}.inline`, SHORT],
  ['an inline jwks of 65536 characters', jwks({ inline: text(65536) })],
  ['an inline jwks of 65537 characters', jwks({ inline: text(65537) }), `${jwksAt}.inline`, LONG],
  ['a remote jwks', remote({ cacheDuration: '5m' })],
  ['a remote jwks without jwksPath', jwks({ remote: { backendRef: service } }), `${jwksAt}.remote.jwksPath`, REQUIRED],
  ['a remote jwks with an empty jwksPath', remote({ jwksPath: '' }), `${jwksAt}.remote.jwksPath`, SHORT],
  ['a remote jwks with a jwksPath of 2001', remote({ jwksPath: text(2001) }), `${jwksAt}.remote.jwksPath`, LONG],
  ['a remote jwks without backendRef', jwks({ remote: { jwksPath: '/j' } }), `${jwksAt}.remote.backendRef`, REQUIRED],
  ['a remote jwks cached for 4m59s', remote({ cacheDuration: '4m59s' }), `${jwksAt}.remote.cacheDuration`, 'must be at least 5m'],
  ['a remote jwks by url', jwks({ remote: { url: 'https://idp' } }), '', 'unknown field'],

  ['OIDC', oidc({})],
  [
    'OIDC with all fields',
    oidc({
      endpoints: {
        authorization: 'https://a.example/auth',
        token: { path: '/token', backendRef: service },
        keys: { path: '/keys' },
        endSession: 'https://a.example/out',
      },
      secretRef: { name: 's' },
      clientAuthentication: 'Body',
      scopes: ['profile'],
      parameters: { prompt: 'login' },
      publicUrl: 'https://app.example',
      callbackPath: '/login/callback',
      logoutPath: '/logout',
      afterLogoutPath: '/bye',
      login: 'true',
      claims: ['email'],
      lifetime: '8h',
      sameSite: 'Strict',
      cookieDomain: 'app.example',
      forwardAccessToken: true,
      forwardIdToken: 'x-id-token',
    }),
  ],
  ['OIDC without issuer', traffic({ oidc: { backendRef: service, clientId: 'c' } }), `${at}.oidc.issuer`, REQUIRED],
  ['OIDC without clientId', traffic({ oidc: { backendRef: service, issuer: 'https://i' } }), `${at}.oidc.clientId`, REQUIRED],
  ['OIDC with an issuer that is no URL', oidc({ issuer: 'login.example.com' }), `${at}.oidc.issuer`, PATTERN],
  ['OIDC with an issuer with a user', oidc({ issuer: 'https://a@b' }), `${at}.oidc.issuer`, PATTERN],
  ['OIDC with a publicUrl with a path', oidc({ publicUrl: 'https://a/b' }), `${at}.oidc.publicUrl`, PATTERN],
  ['OIDC with a callbackPath with a query', oidc({ callbackPath: '/a?b' }), `${at}.oidc.callbackPath`, PATTERN],
  ['OIDC with a top-level cookieDomain', oidc({ cookieDomain: 'com' }), `${at}.oidc.cookieDomain`, PATTERN],
  ['OIDC for 59s', oidc({ lifetime: '59s' }), `${at}.oidc.lifetime`, 'must be at least 1m'],
  ['OIDC with equal paths', oidc({ callbackPath: '/a', logoutPath: '/a' }), `${at}.oidc`, 'callbackPath and logoutPath must differ'],

  ['basic with users', basic({ users: ['u:$apr1$a$b'], realm: 'r', mode: 'Optional' })],
  ['basic with a Secret', basic({ secretRef: { name: 's' } })],
  ['basic with neither', basic({}), `${at}.basicAuthentication`, one('users', 'secretRef')],
  ['basic with both', basic({ users: ['u:h'], secretRef: { name: 's' } }), `${at}.basicAuthentication`, one('users', 'secretRef')],
  ['basic with no users', basic({ users: [] }), `${at}.basicAuthentication.users`, FEW],
  ['basic with 256 users', basic({ users: repeat(256, (i) => `u${i}:h`) })],
  ['basic with 257 users', basic({ users: repeat(257, (i) => `u${i}:h`) }), `${at}.basicAuthentication.users`, MANY],
  ['basic in mode Permissive', basic({ users: ['u:h'], mode: 'Permissive' }), `${at}.basicAuthentication.mode`, UNSUPPORTED],
  ['basic with a Secret without name', basic({ secretRef: {} }), `${at}.basicAuthentication.secretRef.name`, REQUIRED],

  ['API keys of a Secret', apiKey({ secretRef: { name: 's' }, mode: 'Optional' })],
  ['API keys of selected Secrets', apiKey({ secretSelector: { matchLabels: { app: 'x' } }, mode: 'Permissive' })],
  ['API keys of neither', apiKey({ mode: 'Strict' }), `${at}.apiKeyAuthentication`, one('secretRef', 'secretSelector')],
  [
    'API keys of both',
    apiKey({ secretRef: { name: 's' }, secretSelector: { matchLabels: {} } }),
    `${at}.apiKeyAuthentication`,
    one('secretRef', 'secretSelector'),
  ],
  ['API keys of a selector without matchLabels', apiKey({ secretSelector: {} }), `${at}.apiKeyAuthentication.secretSelector.matchLabels`, REQUIRED],
  ['API keys in an unknown mode', apiKey({ secretRef: { name: 's' }, mode: 'Off' }), `${at}.apiKeyAuthentication.mode`, UNSUPPORTED],

  ...['Allow', 'Deny', 'Require'].map((action): Row => [`authorization ${action}`, authorization({ action, policy: { matchExpressions: ['true'] } })]),
  ['authorization with an unknown action', authorization({ action: 'Log', policy: { matchExpressions: ['true'] } }), `${at}.authorization.action`, UNSUPPORTED],
  ['authorization without policy', authorization({}), `${at}.authorization.policy`, REQUIRED],
  ['authorization without expressions', authorization({ policy: {} }), `${at}.authorization.policy.matchExpressions`, REQUIRED],
  ['authorization with no expressions', authorization({ policy: { matchExpressions: [] } }), `${at}.authorization.policy.matchExpressions`, FEW],
  ['authorization with 256 expressions', authorization({ policy: { matchExpressions: repeat(256, () => 'true') } })],
  [
    'authorization with 257 expressions',
    authorization({ policy: { matchExpressions: repeat(257, () => 'true') } }),
    `${at}.authorization.policy.matchExpressions`,
    MANY,
  ],
  ['authorization with an empty expression', authorization({ policy: { matchExpressions: [''] } }), `${at}.authorization.policy.matchExpressions[0]`, SHORT],
  [
    'JWT and MCP authentication in one policy',
    policy({
      targetRefs: [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name: 'r' }],
      traffic: { jwtAuthentication: { providers: [provider] } },
      backend: { mcp: { authentication: mcpAuthentication } },
    }),
    'spec.backend.mcp.authentication',
    'may not be used in the same policy',
  ],
]
