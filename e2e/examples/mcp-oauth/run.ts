import type { Example } from '../../harness/example/example.ts'

const wellKnown = 'http://localhost:8080/.well-known'

export default {
  upstreams: [
    { name: 'documents', port: 9001, kind: 'mcp' },
    { name: 'keycloak', port: 9002, kind: 'idp' },
  ],
  commands: [
    {
      title: 'without a token: 401 with the metadata URL',
      command: 'curl -si http://localhost:8080/mcp -d {}',
      prints: /^HTTP\/1.1 401[^]*www-authenticate: Bearer resource_metadata="http:\/\/localhost:8080\/\.well-known\/oauth-protected-resource\/mcp"/i,
    },
    {
      title: 'the metadata has the gateway as authorization server',
      command: `curl -s ${wellKnown}/oauth-protected-resource/mcp`,
      prints: /"authorization_servers":\["http:\/\/localhost:8080\/mcp"\][^]*"scopes_supported":\["tools"\]/,
    },
    {
      title: 'users log in at the identity provider, and clients register through the gateway',
      command: `curl -s ${wellKnown}/oauth-authorization-server/mcp`,
      prints:
        /(?=[^]*"authorization_endpoint":"http:\/\/localhost:9002\/realms\/shop\/)(?=[^]*"registration_endpoint":"http:\/\/localhost:8080\/\.well-known\/oauth-authorization-server\/mcp\/client-registration")/,
    },
    {
      title: 'a client registers',
      command: `curl -s ${wellKnown}/oauth-authorization-server/mcp/client-registration -d '{"redirect_uris":["http://127.0.0.1:3000/callback"],"token_endpoint_auth_method":"none"}'`,
      prints: /"client_id":"[^"]+"/,
    },
    {
      title: 'pages of an allowed origin may be clients',
      command: `curl -si -X OPTIONS http://localhost:8080/mcp -H 'Origin: https://inspector.example.com' -H 'Access-Control-Request-Method: POST' -H 'Access-Control-Request-Headers: authorization'`,
      prints: /^HTTP\/1.1 20\d[^]*access-control-allow-origin: https:\/\/inspector\.example\.com/i,
    },
  ],
} satisfies Example
