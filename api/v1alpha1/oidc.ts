import { boolean, choice, list, map, object, ref, set, string, type Definitions } from '../schema.ts'
import { duration } from './shared.ts'

const path = (description: string, more: object = {}) => string(description, { minLength: 1, maxLength: 1024, pattern: '^/[!-~]*$', ...more })
const url = (description: string) =>
  string(description, { minLength: 1, maxLength: 1024, pattern: "^https?://[A-Za-z0-9_.:\\[\\]-]+(/[A-Za-z0-9_.~:@!$&'()*+,;=%/-]*)?$" })
const claim = string('Name of a claim.', { minLength: 1, maxLength: 256 })
/** Characters of cookie values and header names need no quotes. */
const plainPath = { pattern: '^/[A-Za-z0-9_.~/-]+$', maxLength: 256 }

export const oidcDefinitions: Definitions = {
  OIDC: object(
    'Logs people in with OpenID Connect: authorization code flow with PKCE, sessions in encrypted cookies. The claims of the ID token are usable as `jwt.<claim>`. Navigations of browsers without a session are sent to the provider, all other requests get 401.',
    {
      issuer: url('Issuer of the provider, byte for byte as in its tokens. Its discovery document is read through `backendRef`.'),
      backendRef: ref('BackendObjectReference', 'The provider: a Service or a static ProxyBackend. Its `tls` policy applies.'),
      endpoints: object('Endpoints of the provider that are not those of its discovery document. With authorization, token and keys none is read.', {
        authorization: url('Where browsers are sent to log in.'),
        token: ref('OIDCEndpoint', 'Token endpoint.'),
        keys: ref('OIDCEndpoint', 'JSON Web Key Set.'),
        endSession: url('Where browsers are sent to log out.'),
      }),
      clientId: ref('ShortString', 'Id of the gateway at the provider.'),
      secretRef: ref('SecretReference', 'Secret with the entry `clientSecret`. Default: a public client.'),
      clientAuthentication: choice(['Basic', 'Body'], 'Where id and secret of the client are sent: in the Authorization header (default), or in the body.'),
      scopes: set(
        string('Scope.', { minLength: 1, maxLength: 256, pattern: '^[!#-\\[\\]-~]+$' }),
        'Scopes to request beside `openid`. Most providers issue refresh tokens for `offline_access`.',
        1,
        32,
      ),
      parameters: map(ref('LongString'), 'More parameters of the authorization request, for example `prompt: select_account`.', 1, 16),
      publicUrl: string('Scheme and host of the URLs that browsers use, for example `https://app.example.com`. Default: those of the request.', {
        minLength: 1,
        maxLength: 300,
        pattern: '^https?://[A-Za-z0-9_.:\\[\\]-]+$',
      }),
      callbackPath: path('Path that the provider returns to. The route must match it. Default: `/oauth2/callback`.', plainPath),
      logoutPath: path('Path that ends the session and then that at the provider. The route must match it. Default: `/oauth2/logout`.', plainPath),
      afterLogoutPath: path('Path that the provider returns to after logout. Default: none is asked for.', plainPath),
      login: ref(
        'CELExpression',
        'Whether a request without a session may start a login; false: 401. Default: navigations of browsers, by `Sec-Fetch-Mode`, else GET with `Accept: text/html`.',
      ),
      claims: list(claim, 'Claims of the ID token that a session keeps. Default: all. Choose some if the cookies become too large.', 1, 64),
      lifetime: duration('Longest time until the user logs in again. Default: 12h.', 60_000),
      sameSite: choice(['Lax', 'Strict', 'None'], 'Attribute of the session cookies. Default: Lax.'),
      cookieDomain: string('Domain that shares the session cookies. Default: the host alone.', {
        minLength: 1,
        maxLength: 253,
        pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$',
      }),
      forwardAccessToken: boolean('Sends the access token to the backend as `Authorization: Bearer`. Default: false.'),
      forwardIdToken: ref('HTTPHeaderName', 'Header with the ID token for the backend. Default: none.'),
    },
    ['issuer', 'backendRef', 'clientId'],
    [
      {
        rule: '!has(self.callbackPath) || !has(self.logoutPath) || self.callbackPath != self.logoutPath',
        message: 'callbackPath and logoutPath must differ',
      },
    ],
  ),
  OIDCEndpoint: object(
    'An endpoint that the gateway calls.',
    {
      backendRef: ref('BackendObjectReference', 'The server: a Service or a static ProxyBackend. Default: that of the policy.'),
      path: path('Path, for example `/oauth2/v4/token`.'),
    },
    ['path'],
  ),
}
